"""Text as plain tokens: one rule, the same whoever reads them."""

from __future__ import annotations

import pytest

from biograft.corpus.alignment import split_tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("acute cough, 3.5 mg", ["acute", "cough", ",", "3", ".", "5", "mg"]),
        ("Crohn's heart-attack", ["Crohn", "'", "s", "heart", "-", "attack"]),
        ("TNF_a ≥5°C", ["TNF", "_", "a", "≥", "5", "°", "C"]),
        ("naïve cafe\u0301s", ["naïve", "cafe\u0301s"]),
        ("糖尿病IL6型。", ["糖", "尿", "病", "IL6", "型", "。"]),
        ("カタ\u3000か\u3099", ["カ", "タ", "か\u3099"]),
        ("तीव्र +\u0301", ["तीव्र", "+\u0301"]),
        (" \n", []),
        ("", []),
    ],
)
def test_tokens_are_characters_runs_and_signs(text, expected):
    assert [text[start:end] for start, end in split_tokens(text)] == expected
