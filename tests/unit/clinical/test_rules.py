"""Rule files: what is wrong is said with file and rule."""

from __future__ import annotations

import pytest

from biograft.clinical import AssertionRules, assert_status
from biograft.clinical.rules import RuleEntry
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


@pytest.mark.parametrize(("text", "finding"), [("No flu.", "flu"), ("No evidence of flu.", "flu")])
def test_rules_with_others_leave_those_they_are_made_from(text, finding):
    """They share what is equal: a phrase of the others replaces the same one, in the copy alone."""
    shipped = AssertionRules.shipped("en")
    span = [(text.index(finding), text.index(finding) + len(finding))]
    entries = [
        RuleEntry(name="a", kind="ignore", phrases=("no",)),
        RuleEntry(name="b", kind="trigger", flags=("family",), phrases=("no evidence of",)),
        RuleEntry(name="c", kind="trigger", flags=("family",), phrases=("zork",)),
    ]
    rules = shipped.with_rules(entries, "test")
    (said,) = assert_status(text, span, "en", rules)
    assert said.status == ("family" if "evidence" in text else "present")
    assert assert_status("Zork flu", [(5, 8)], "en", rules)[0].status == "family"
    assert assert_status(text, span)[0].status == "absent"
    assert assert_status("Zork flu", [(5, 8)])[0].status == "present"
