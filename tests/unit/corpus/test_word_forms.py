import pytest
from hypothesis import given, strategies as st

from biograft.corpus import word_form
from biograft.corpus.word_forms import ROMAN_NUMBERS, british, singular


@pytest.mark.parametrize(
    ("words", "form"),
    [
        ("haemorrhage hemorrhages haemorrhages", "hemorrhage"),
        ("parkinsons", "parkinson"),
        ("tumours tumor", "tumor"),
        ("biopsies biopsy", "biopsy"),
        ("diagnoses", "diagnosis"),
        ("viii", "8"),
        ("hdls", "hdls"),
        ("diabetes", "diabetes"),
    ],
)
def test_spellings_of_a_word_have_one_form(words, form):
    assert {word_form(word) for word in words.split()} == {form}


WORDS = st.lists(
    st.sampled_from(
        "a e o ae oe our re s es ies is sulph leuc alumini um ation i v x t b c z".split()
    ),
    max_size=6,
).map("".join)


@given(WORDS)
def test_the_fast_test_excludes_only_words_that_stay(word):
    form = word_form(word)
    assert word_form(form) == form
    if form == word:
        plain = british(word)
        assert plain == word
        assert len(word) <= 4 or singular(word) == word
        assert len(word) < 2 or word not in ROMAN_NUMBERS
