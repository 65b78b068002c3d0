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
