"""NIL without a calibration."""

import pytest
from hypothesis import given, strategies as st

from biograft.linking import Calibration, Candidate, NilThreshold, default_threshold, is_misspelt


@pytest.mark.parametrize(
    ("text", "generators", "expected"),
    [
        ("flu", ["lexical"], 0.55),
        ("flu", ["dense", "lexical"], 0.6),
        ("流感", ["dense", "lexical"], 0.4),
        ("flu", ["dense"], None),
        ("flu", [], None),
    ],
)
def test_the_default_threshold(text, generators, expected):
    assert default_threshold(text, generators) == expected


@pytest.mark.parametrize(("value", "is_nil"), [(0.5, False), (0.499, True)])
def test_an_answer_at_the_threshold_counts(value, is_nil):
    by_score = NilThreshold(0.5, None, None, ("lexical",))
    assert by_score.is_nil("flu", Candidate("D1", "Flu", "Flu", value)) is is_nil
    calibrated = NilThreshold(0.5, Calibration("platt", ((1.0, 0.0),)), None, ("lexical",))
    first = Candidate("D1", "Flu", "Flu", 0.1, probability=value)
    assert calibrated.is_nil("flu", first) is is_nil


@pytest.mark.parametrize(("score", "is_nil"), [(0.55, False), (0.549, True)])
def test_an_answer_at_the_default_threshold_counts(score, is_nil):
    nil = NilThreshold(None, None, None, ("lexical",))
    assert nil.is_nil("flu", Candidate("D1", "Cold", "Cold", score)) is is_nil


LETTERS = st.text("abc", max_size=6)


def edits(word):
    """All words that are one edit away, by plain loops."""
    cuts = [(word[:n], word[n:]) for n in range(len(word) + 1)]
    yield from (a + b[1:] for a, b in cuts if b)
    yield from (a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1)
    yield from (a + c + b[1:] for a, b in cuts if b for c in "abc")
    yield from (a + c + b for a, b in cuts for c in "abc")


@given(LETTERS, LETTERS)
def test_misspelt_words_against_plain_loops(text, name):
    expected = min(len(text), len(name)) >= 4 and text[0] == name[0] and text != name
    assert is_misspelt(text, name) is (expected and name in set(edits(text)))
