import pytest

from biograft.text import word_form


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
