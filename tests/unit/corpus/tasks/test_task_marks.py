"""Indicators in place of mentions, and the way back."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from biograft.corpus.tasks import RelationExample, anonymise
from biograft.corpus.tasks.records import unmark
from biograft.documents import Mention

TEXT = "Aspirin and old or new statins interact."


def mention(start, end, kind="drug"):
    return Mention(start, end, TEXT[start:end], type=kind)


def test_both_mentions_are_replaced():
    found = anonymise(RelationExample(TEXT, mention(0, 7, "brand"), mention(23, 30, "Gene")))
    assert found.text == "@DRUG$ and old or new @GENE$ interact."
    assert [found.text[slice(*span)] for span in (found.first, found.second)] == [
        "@DRUG$",
        "@GENE$",
    ]


def test_the_second_may_stand_first():
    found = anonymise(RelationExample(TEXT, mention(23, 30, "a"), mention(0, 7, "b")))
    assert found.text[slice(*found.first)] == "@A$"
    assert found.text[slice(*found.second)] == "@B$"


def test_mentions_that_overlap_are_one_indicator():
    found = anonymise(RelationExample(TEXT, mention(12, 30), mention(19, 26)))
    assert found.text == "Aspirin and @DRUG-DRUG$ interact."
    assert found.first == found.second == (12, 23)


def test_names_of_ones_own():
    example = RelationExample(TEXT, mention(0, 7), mention(23, 30, ""))
    assert anonymise(example, {"drug": "X"}).text == "@X$ and old or new @ENTITY$ interact."


@given(st.lists(st.integers(0, len(TEXT)), min_size=4, max_size=4, unique=True))
def test_every_character_knows_where_it_came_from(cuts):
    a, b, c, d = cuts
    spans = [(min(a, b), max(a, b)), (min(c, d), max(c, d))]
    found = anonymise(RelationExample(TEXT, mention(*spans[0]), mention(*spans[1])))
    inside = {k for _, (start, end) in found.edits for k in range(start, end)}
    for k, character in enumerate(found.text):
        if k not in inside:
            assert TEXT[found.original(k)] == character
    for (start, _), (new_start, new_end) in found.edits:
        assert {found.original(k) for k in range(new_start, new_end)} == {start}
    assert found.original(len(found.text)) == len(TEXT)


MARKS = (("<< ", " >>"), ("[[ ", " ]]"))


@pytest.mark.parametrize(
    ("marked", "plain", "spans"),
    [
        ("<< a >>[[ b ]]", "ab", [(0, 1), (1, 2)]),
        ("x [[ a ]] y << b c >>.", "x a y b c.", [(6, 9), (2, 3)]),
        ("<< a [[ b ]] >>", "a b", [(0, 3), (2, 3)]),
    ],
)
def test_marks_are_taken_out(marked, plain, spans):
    text, first, second = unmark(marked, MARKS)
    assert (text, [(m.start, m.end) for m in (first, second)]) == (plain, spans)
    assert [first.text, second.text] == [plain[start:end] for start, end in spans]
