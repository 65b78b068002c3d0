"""Rule files: what is wrong is said with file and rule."""

from __future__ import annotations

import pytest

from biograft.clinical import AssertionRules
from biograft.errors import ConfigError

RULE = '[[rule]]\nname = "no"\nkind = "trigger"\nflags = ["negated"]\nphrases = ["no"]\n'


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_shipped_rules_load(language):
    assert AssertionRules.shipped(language).language == language


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "missing key 'language'"),
        ('language = "de"\nrule = []', "language: expected one of en, zh"),
        ('language = "en"\n' + RULE.replace("trigger", "triger"), "rule 'no': kind: expected one"),
        ('language = "en"\n' + RULE.replace("negated", "negative"), "rule 'no': flags"),
        ('language = "en"\n' + RULE.replace('["negated"]', "[]"), "rule 'no': flags: a trigger"),
        ('language = "en"\n' + RULE.replace('["no"]', "[]"), "rule 'no': phrases: expected at"),
        ('language = "en"\n' + RULE.replace('"no"]', '"{kin}"]'), r"rule 'no': unknown list"),
        ('language = "en"\n' + RULE + 'scoop = "list"', "rule 'no': unknown key 'scoop'"),
        ('language = "en"\n' + RULE + 'scope = "lst"', "rule 'no': scope: expected one of"),
        ('language = "en"\n' + RULE.replace("name", "nam"), "rule 1: unknown key 'nam'"),
        (
            'language = "en"\n' + RULE + RULE.replace('name = "no"', 'name = "two"'),
            "rule 'two': phrase 'no' is also in rule 'no'; keep one",
        ),
        ('language = "en"\n' + RULE + '[lists]\nkin = "mother"\n', "lists.kin: expected a list"),
        ('language = "en', "not valid TOML"),
        (
            'language = "en"\n' + RULE.replace('"no"]', f'"{"(a|b)" * 40}"]'),
            "rule 'no': a phrase of more than 100,000 wordings",
        ),
        (
            'language = "en"\n' + RULE.replace('"no"]', f'"{"a " * 400}"]'),
            "rule 'no': a wording of more than 200 characters",
        ),
        (
            'language = "en"\n' + RULE + '[[section]]\nname = "plan"\nheadings = ["a {b"]\n',
            "section 'plan': not a phrase",
        ),
    ],
)
def test_errors_name_file_and_rule(rule_file, text, message):
    path = rule_file(text)
    with pytest.raises(ConfigError, match=message) as caught:
        AssertionRules.load(path)
    assert str(caught.value).startswith(str(path))


def test_a_missing_file(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        AssertionRules.load(tmp_path / "none.toml")
