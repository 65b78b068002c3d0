"""Traditional characters as simplified ones: one for one, whatever else stands there."""

import pytest
from hypothesis import given, strategies as st

from biograft.corpus.dictionary import DictionaryMatcher
from biograft.corpus.tokens import simplify


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("頭痛發熱", "头痛发热"),
        ("乾燥綜合徵", "干燥综合征"),
        ("Ⅱ型糖尿病 type 2", "Ⅱ型糖尿病 type 2"),
        ("fever", "fever"),
        ("", ""),
    ],
)
def test_characters_are_exchanged_one_by_one(text, expected):
    assert simplify(text) == expected


@given(st.text())
def test_no_offset_moves_and_twice_is_once(text):
    found = simplify(text)
    assert len(found) == len(text)
    assert simplify(found) == found


@pytest.mark.parametrize(
    ("text", "place"),
    [("診斷為糖尿病腎病。", (3, 8)), ("诊断为糖尿病肾病。", (3, 8)), ("𠀀糖尿病腎病", (1, 6))],
)
def test_names_are_found_in_either_script(text, place):
    [found] = DictionaryMatcher(["糖尿病肾病"]).find(text)
    assert (found.start, found.end) == place
    assert found.text == text[slice(*place)]
    [again] = DictionaryMatcher(["糖尿病腎病"]).find("糖尿病肾病")
    assert again.name_rows == (0,)
