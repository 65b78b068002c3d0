"""Conversion of traditional characters into simplified ones, character by character."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, strategies as st

from biograft.corpus.dictionary import DictionaryMatcher
from biograft.corpus.tokens import WORD_END, WORD_START, mark, mark_names, simplify

ANY = st.text(
    st.one_of(
        st.sampled_from("abs1 '’-,.\0\n肺癌かﬁßİ㎎⑴é\u0301\u200b\ufe0f❤😀กุ\ud800"),
        st.characters(exclude_categories=[]),
    ),
    max_size=30,
)


def shown(text, **options):
    return mark(text, **options).text.replace(WORD_START, "<").replace(WORD_END, ">")


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("", ""),
        (" -\n", ""),
        ("Breast-Cancer", "<breast><cancer>"),
        ("tumors gas ass As", "<tumor>s<ga>s<ass><as>"),
        ("Crohn’s 'quoted' 5'-x", "<crohn>s<quoted><5><x>"),
        ("2型糖", "<2>型糖"),
        ("(a)", "(<a>)"),
        ("ﬁx İ ㎎", "<fix><i\u0307><mg>"),
        ("can\u00adcer\u200b❤\ufe0f", "<cancer>❤"),
        ("e\u0301 か\u3099x \u0301", "<e\u0301>か\u3099<x><\u0301>"),
        ("a\0b\ud800c", "<a><b><c>"),
    ],
)
def test_text_is_marked(text, marked):
    assert shown(text) == marked


def test_plurals_are_marked_by_option():
    assert shown("tumors", plurals=False) == "<tumors>"


@given(ANY)
def test_tokens_have_original_offsets(text):
    tokens = mark(text)
    before = 0
    for start, stem, end, first, last in zip(
        tokens.starts, tokens.stems, tokens.ends, tokens.first, tokens.last, strict=True
    ):
        assert start == before < stem <= end
        assert 0 <= first < last <= len(text)
        token = tokens.data[start:end].tobytes().decode("utf-8", "surrogatepass")
        token = token.replace(WORD_START, "").replace(WORD_END, "")
        folded = unicodedata.normalize("NFKD", text[first:last]).casefold()
        assert set(token) <= set(simplify(unicodedata.normalize("NFKD", folded)))
        before = end
    assert before == len(tokens.data)


@given(st.lists(ANY, max_size=5), st.booleans())
def test_names_marked_together_equal_names_marked_alone(names, plurals):
    alone = [mark(name, plurals=plurals).data.tobytes() for name in names]
    assert mark_names(names, plurals=plurals) == alone


@given(st.lists(st.sampled_from(["e\u0301", "Å", "ñ", "a", " ", "한", "が", "ẞ", "ǆ", "'"])))
def test_canonically_equal_texts_are_marked_alike(parts):
    text = "".join(parts)
    composed, parted = (mark(unicodedata.normalize(form, text)).text for form in ("NFC", "NFD"))
    assert composed == parted


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
def test_characters_are_simplified_one_by_one(text, expected):
    assert simplify(text) == expected


@given(st.text())
def test_simplify_keeps_offsets_and_is_idempotent(text):
    result = simplify(text)
    assert len(result) == len(text)
    assert simplify(result) == result


@pytest.mark.parametrize(
    ("text", "offsets"),
    [("診斷為糖尿病腎病。", (3, 8)), ("诊断为糖尿病肾病。", (3, 8)), ("𠀀糖尿病腎病", (1, 6))],
)
def test_names_match_in_both_scripts(text, offsets):
    [result] = DictionaryMatcher(["糖尿病肾病"]).find(text)
    assert (result.start, result.end) == offsets
    assert result.text == text[slice(*offsets)]
    [again] = DictionaryMatcher(["糖尿病腎病"]).find("糖尿病肾病")
    assert again.name_rows == (0,)
