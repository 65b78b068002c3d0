"""Indicators instead of mentions, and removal of entity marks."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from biograft.corpus import RelationExample, anonymise
from biograft.corpus.tasks.records import unmark
from biograft.documents import Mention

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


def test_mentions_in_reverse_order():
    result = anonymise(RelationExample(TEXT, mention(23, 30, "a"), mention(0, 7, "b")))
    assert result.text[slice(*result.first)] == "@A$"
    assert result.text[slice(*result.second)] == "@B$"


def test_overlapping_mentions_share_one_indicator():
    result = anonymise(RelationExample(TEXT, mention(12, 30), mention(19, 26)))
    assert result.text == "Aspirin and @DRUG-DRUG$ interact."
    assert result.first == result.second == (12, 23)


def test_custom_indicators():
    example = RelationExample(TEXT, mention(0, 7), mention(23, 30, ""))
    assert anonymise(example, {"drug": "X"}).text == "@X$ and old or new @ENTITY$ interact."


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


MARKS = (("<< ", " >>"), ("[[ ", " ]]"))


@pytest.mark.parametrize(
    ("marked", "plain", "spans"),
    [
        ("<< a >>[[ b ]]", "ab", [(0, 1), (1, 2)]),
        ("x [[ a ]] y << b c >>.", "x a y b c.", [(6, 9), (2, 3)]),
        ("<< a [[ b ]] >>", "a b", [(0, 3), (2, 3)]),
    ],
)
def test_marks_are_removed(marked, plain, spans):
    text, first, second = unmark(marked, MARKS)
    assert (text, [(m.start, m.end) for m in (first, second)]) == (plain, spans)
    assert [first.text, second.text] == [plain[start:end] for start, end in spans]
