import time

import pytest

from biograft.kb import search_names
from biograft.kb.names import normalise

CONCEPTS = [
    {"id": "A", "name": "Crohn's disease", "names": {"zh": ["克罗恩病"]}},
    {"id": "B", "name": "Heart attack", "names": ["acute heart attack"]},
    {"id": "C", "name": "Attack of the heart, silent"},
    {"id": "D", "name": "HEART", "names": ["heart (organ)"]},
    {"id": "E", "name": "Heart failure", "names": {"zh": ["心力衰竭", "慢性心力衰竭"]}},
    {"id": "F", "name": "Éclair syndrome"},
    {"id": "G", "names": []},
]


@pytest.fixture
def base(build):
    return build(CONCEPTS).base


def results(base, text, **options):
    return [(match.concept, match.how) for match in search_names(base, text, **options)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("heart attack", [("B", "normalised"), ("C", "words")]),
        ("HEART", [("D", "exact"), ("B", "prefix"), ("E", "prefix"), ("C", "words")]),
        ("attack heart", [("B", "words"), ("C", "words")]),
        ("heart fail", [("E", "prefix")]),
        ("罗恩", [("A", "words")]),
        ("éclair", [("F", "prefix")]),
        ("lung", []),
        ("", []),
        ("\ud800", []),
        ("heart\ud800", [("D", "normalised"), ("B", "prefix"), ("E", "prefix"), ("C", "words")]),
    ],
)
def test_exact_names_come_first_then_what_begins_so_then_all_words(base, text, expected):
    assert results(base, text) == expected


@pytest.mark.parametrize(
    "text", ["crohn's", "crohns", "Crohn’s dis", "CROHNS DIS", "disease crohns"]
)
def test_an_apostrophe_does_not_matter(base, text):
    """Names with an apostrophe were found only by those who wrote it, or the whole name."""
    assert [c for c, _ in results(base, text)] == ["A"]


@pytest.mark.parametrize("limit", [1, 2, 3, 10])
def test_at_most_so_many_are_given_and_the_first_stay_the_same(base, limit):
    assert results(base, "heart", limit=limit) == results(base, "heart")[:limit]


def test_searching_agrees_with_a_look_at_every_name(build, random_concepts):
    base = build(random_concepts(200, 9)).base
    names = [(normalise(name.text), c.id) for c in base for name in c.names]
    for text in ["heart", "acute pain", "病 x", "straße", "β", "pain 3", "HEART PAIN 17", "x x x"]:
        words = normalise(text).split()
        expected = {c for key, c in names if all(word in key for word in words)}
        assert {c for c, _ in results(base, text, limit=1000)} == expected, text
        assert results(base, text, limit=1000) == results(base, text, limit=1000)


def test_a_query_without_end_is_answered_at_once(base):
    """Guards: the time grew with the square of a word's length; 100,000 letters took over 60 s."""
    began = time.process_time()
    assert search_names(base, "x" * 100_000) == []
    assert time.process_time() - began < 2
    assert search_names(base, "d" * 150) == []
