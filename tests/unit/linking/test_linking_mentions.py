from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from biograft.linking.mentions import gold_parts, split_composite


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("A|B", ["A", "B"]),
        ("HIV + HCV", ["HIV", "HCV"]),
        ("HIV+HCV", ["HIV", "HCV"]),
        ("ovarian and breast cancer", ["ovarian cancer", "breast cancer"]),
        ("both ovarian and breast cancer", ["ovarian cancer", "breast cancer"]),
        ("ovarian and/or breast cancer", ["ovarian cancer", "breast cancer"]),
        (
            "breast, ovarian, and prostate cancer",
            ["breast cancer", "ovarian cancer", "prostate cancer"],
        ),
        ("cancer of the breast and ovary", ["cancer of the breast", "cancer of the ovary"]),
        ("cancer of the breast and diabetes", ["cancer of the breast", "diabetes"]),
        ("impairments in learning or memory", ["impairments in learning", "impairments in memory"]),
        ("colon/rectal cancer", ["colon cancer", "rectal cancer"]),
        ("HIV/AIDS", ["HIV", "AIDS"]),
        ("type 1 and 2 diabetes", ["type 1 diabetes", "type 2 diabetes"]),
        ("Types I, II and III CMT", ["Type I CMT", "Type II CMT", "Type III CMT"]),
        ("classes 1 & 2", ["class 1", "class 2"]),
        ("hepatitis B and C", ["hepatitis B", "hepatitis C"]),
        ("MERRF and MELAS", ["MERRF", "MELAS"]),
        ("asthma and heart disease", ["asthma", "heart disease"]),
        ("甲状腺癌和肺癌", ["甲状腺癌", "肺癌"]),
        ("乳腺、卵巢以及肺癌", ["乳腺癌", "卵巢癌", "肺癌"]),
    ],
)  # fmt: skip
def test_composites_are_taken_apart(text, parts):
    assert split_composite(text) == tuple(parts)


@pytest.mark.parametrize(
    "text",
    ["", " ", " and ", "and", "breast cancer", "diabetes mellitus, type 2", "K+ channel", "Ca2+",
     "5/6", "android", "和", "a |", "cancer, and "],
)  # fmt: skip
def test_what_is_no_composite_stays_whole(text):
    assert split_composite(text) == (text,)


class TestWithDictionary:
    def test_a_name_is_never_taken_apart(self):
        names = {"head and neck cancer", "head cancer", "neck cancer"}
        text = "head and neck cancer"
        assert split_composite(text, names.__contains__) == (text,)
        names.remove(text)
        assert split_composite(text, names.__contains__) == ("head cancer", "neck cancer")

    def test_a_text_without_known_parts_stays_whole(self):
        text = "ovarian and breast cancer"
        assert split_composite(text, {"lung cancer"}.__contains__) == (text,)
        assert len(split_composite(text, {"breast cancer"}.__contains__)) == 2

    @pytest.mark.parametrize(
        ("text", "names"),
        [
            ("femoral and left sinus clot", ["femoral sinus clot", "left sinus clot"]),
            ("femoral and left sinus clot", ["femoral clot", "left sinus clot"]),
            ("uterine hyperplasia or cancer", ["uterine hyperplasia", "uterine cancer"]),
            ("fits and heart block", ["fits", "heart block"]),
            ("乳腺和卵巢", ["乳腺", "卵巢"]),
        ],
    )  # fmt: skip
    def test_the_reading_with_the_most_names_wins(self, text, names):
        assert split_composite(text, set(names).__contains__) == tuple(names)


def test_gold_is_split_at_its_own_marks_and_not_stripped():
    assert gold_parts("D1|D2+D3") == ("D1", "D2", "D3")
    assert gold_parts(" a | b") == (" a ", " b")
    assert gold_parts("a") == ("a",)


@given(
    st.lists(st.sampled_from("and or of in , / + | type 1 II C a breast cancer 和 癌 ,".split()))
)
def test_any_text_gives_parts_that_are_not_empty(words):
    text = " ".join(words)
    parts = split_composite(text)
    assert parts == (text,) or (
        len(parts) > 1 and all(part.strip() == part != "" for part in parts)
    )
    assert split_composite(text, lambda _: False) == (text,)
