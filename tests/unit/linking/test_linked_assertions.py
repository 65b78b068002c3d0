"""What the linker says of mentions, beside their concepts."""

from __future__ import annotations

import pytest

from biograft.clinical import Assertion
from biograft.linking import FusedSearch, Linker, LinkerConfig

TEXT = "No breast cancer; possible heart attack in 2015.\nFamily history: ovarian cancer.\n"


@pytest.fixture
def linked(kb):
    return Linker.open(kb)(TEXT).mentions


def test_without_assertions_the_json_is_as_before_and_the_links_are_the_same(kb, linked):
    plain = Linker.open(kb, assertions=False)(TEXT).mentions
    assert [mention.status for mention in plain] == [None] * 3
    assert not any(mention.negated or mention.section for mention in plain)
    assert list(plain[0].to_json()) == [
        "start",
        "end",
        "text",
        "form",
        "concept",
        "name",
        "types",
        "measurements",
        "candidates",
    ]
    before = [(m.start, m.end, m.form, m.candidates, m.concept) for m in plain]
    assert before == [(m.start, m.end, m.form, m.candidates, m.concept) for m in linked]


def test_values_beside_mentions_are_part_of_the_result(kb):
    text = "No diabetes, ovarian cancer 12 mm."
    found = Linker.open(kb)(text).mentions
    values = {m.text: [each["text"] for each in m.to_json()["measurements"]] for m in found}
    assert values["ovarian cancer"] == ["12 mm"]


def test_rules_of_a_file_are_added(kb, tmp_path):
    path = tmp_path / "rules.toml"
    rule = 'name = "x"\nkind = "trigger"\nflags = ["donor"]\nphrases = ["zzz"]\n'
    path.write_text(f'extends = "en"\n[[rule]]\n{rule}', encoding="utf-8")
    linker = Linker.open(kb, assertion_rules=path)
    found = linker("No breast cancer. Zzz ovarian cancer.").mentions
    assert [mention.status for mention in found] == ["absent", "other_person"]
    assert found[1].axes["experiencer"] == "donor"
    assert linker.with_settings(k=1)("Zzz ovarian cancer.").mentions[0].status == "other_person"


class AllUncertain:
    """A model of one method."""

    def assert_status(self, text, spans):
        return [Assertion(uncertain=True, status="possible") for _ in spans]


def test_a_model_of_ones_own_takes_the_place_of_the_rules(kb):
    search = Linker.open(kb).search
    assert isinstance(search, FusedSearch)
    linker = Linker(kb, search, assertions=AllUncertain())
    assert {mention.status for mention in linker(TEXT).mentions} == {"possible"}
    off = Linker(kb, search, assertions=AllUncertain(), config=LinkerConfig(assertions=False))
    assert {mention.status for mention in off(TEXT).mentions} == {None}
