"""Indicators instead of mentions, and removal of entity marks."""

from __future__ import annotations

from hypothesis import given, strategies as st

from biograft.text import RelationExample, anonymise
from biograft.text.documents import Mention

TEXT = "Aspirin and old or new statins interact."


def mention(start, end, kind="drug"):
    return Mention(start, end, TEXT[start:end], type=kind)


def test_both_mentions_are_replaced():
    result = anonymise(RelationExample(TEXT, mention(0, 7, "brand"), mention(23, 30, "Gene")))
    assert result.text == "@DRUG$ and old or new @GENE$ interact."
    assert [result.text[slice(*span)] for span in (result.first, result.second)] == [
        "@DRUG$",
        "@GENE$",
    ]


def test_overlapping_mentions_share_one_indicator():
    result = anonymise(RelationExample(TEXT, mention(12, 30), mention(19, 26)))
    assert result.text == "Aspirin and @DRUG-DRUG$ interact."
    assert result.first == result.second == (12, 23)


@given(st.lists(st.integers(0, len(TEXT)), min_size=4, max_size=4, unique=True))
def test_original_positions(cuts):
    a, b, c, d = cuts
    spans = [(min(a, b), max(a, b)), (min(c, d), max(c, d))]
    result = anonymise(RelationExample(TEXT, mention(*spans[0]), mention(*spans[1])))
    inside = {k for _, (start, end) in result.edits for k in range(start, end)}
    for k, character in enumerate(result.text):
        if k not in inside:
            assert TEXT[result.original(k)] == character
    for (start, _), (new_start, new_end) in result.edits:
        assert {result.original(k) for k in range(new_start, new_end)} == {start}
    assert result.original(len(result.text)) == len(TEXT)
