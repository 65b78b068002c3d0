"""Tags: what they mean, and which may follow which."""

from __future__ import annotations

import itertools

import pytest

from biograft.tasks.ner_text import TagSet


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
@pytest.mark.parametrize("types", [("",), ("X", "Y")])
def test_spans_come_back(scheme, types):
    tags = TagSet(types, scheme)
    spans = [(0, 1, types[0]), (1, 4, types[-1]), (5, 6, types[0])]
    numbers = tags.encode(7, spans)
    assert tags.decode(numbers) == spans
    assert numbers[4] == 0


def test_the_names_of_tags():
    assert TagSet(("X",), "bio").tags == ("O", "B-X", "I-X")
    assert TagSet(("",), "bioes").tags == ("O", "B", "I", "E", "S")


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
def test_what_is_allowed_is_what_some_spans_give(scheme):
    """All sequences of four tags: those allowed are those that encode what they decode to."""
    tags = TagSet(("X", "Y"), scheme)
    follows, begins, ends = tags.may_follow()
    for numbers in itertools.product(range(len(tags.tags)), repeat=4):
        allowed = begins[numbers[0]] and ends[numbers[-1]]
        allowed = allowed and all(follows[a, b] for a, b in itertools.pairwise(numbers))
        assert allowed == (tags.encode(4, tags.decode(numbers)) == list(numbers))
