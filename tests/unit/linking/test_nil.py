"""NIL without a calibration."""

import pytest
from hypothesis import given, strategies as st

from biograft.linking.nil import default_threshold, is_misspelt


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
