"""Conversion of traditional characters into simplified ones, character by character."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings, strategies as st
from naive_names import naive_tokens, stem

from biograft.text import NamesIndex, find_tokens, simplify
from biograft.text.tokens import _N_SEVERAL, GREEK, _fold, join_texts

ANY = st.text(
    st.one_of(
        st.sampled_from("abs1 '’-,.\0\n肺癌かﬁßİ㎎⑴é\u0301\u200b\ufe0f❤😀กุ\ud800"),
        st.characters(exclude_categories=[]),
    ),
    max_size=30,
)


def found(*texts):
    """The letters of each token, whether it may be a plural, and its offsets."""
    tokens = find_tokens(join_texts(texts))
    starts = [0, *tokens.ends[:-1].tolist()]
    letters = [
        "".join(map(chr, tokens.letters[start:end]))
        for start, end in zip(starts, tokens.ends, strict=False)
    ]
    columns = zip(letters, tokens.stems.tolist(), tokens.first, tokens.last, strict=True)
    return [(word, bool(stem), int(first), int(last)) for word, stem, first, last in columns]


def shown(text):
    return " ".join(word[:-1] + "/s" if plural else word for word, plural, _, _ in found(text))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", ""),
        (" -\n", ""),
        ("tumors gas ass As", "tumor/s ga/s ass as"),
        ("Crohn’s 'quoted' 5'-x", "crohn/s quoted 5 x"),
        ("ﬁx İ ㎎", "fix i mg"),
        ("Café Sjo\u0308gren’s Ménière й", "cafe sjogren/s meniere и"),
        ("can\u00adcer\u200b❤\ufe0f", "cancer ❤"),
        ("e\u0301 か\u3099x \u0301", "e か\u3099 x"),
        ("a\0b\ud800c", "a b c"),
    ],
)
def test_text_is_folded_into_tokens(text, tokens):
    assert shown(text) == tokens


@given(ANY)
def test_tokens_equal_those_of_plain_loops(text):
    expected = [
        (letters, bool(stem(letters)), first, last) for letters, first, last in naive_tokens(text)
    ]
    assert found(text) == expected
    for letters, _, first, last in expected:
        if letters in GREEK.values():  # of one letter, spelled out
            continue
        folded = unicodedata.normalize("NFKD", text[first:last]).casefold()
        assert set(letters) <= set(simplify(unicodedata.normalize("NFKD", folded)))


@given(st.lists(ANY, min_size=1, max_size=5))
def test_texts_that_are_joined_have_the_tokens_of_each_alone(texts):
    together = [letters for letters, _, _, _ in found(*texts)]
    alone = [[letters for letters, _, _, _ in found(text)] for text in texts]
    assert together == [letters for each in alone for letters in [*each, ""]][:-1]


def test_there_is_space_for_all_characters_that_become_several():
    # no character of the planes behind these becomes another one
    sizes = [len(_fold(chr(code))) for code in (*range(0x30000), *range(0xE0000, 0xE0200))]
    assert sum(1 + size for size in sizes if size > 1) < _N_SEVERAL


@given(st.lists(st.sampled_from(["e\u0301", "Å", "ñ", "a", " ", "한", "が", "ẞ", "ǆ", "'"])))
def test_canonically_equal_texts_have_the_same_tokens(parts):
    text = "".join(parts)
    composed, parted = (shown(unicodedata.normalize(form, text)) for form in ("NFC", "NFD"))
    assert composed == parted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("頭痛發熱", "头痛发热"),
        ("乾燥綜合徵", "干燥综合征"),
        ("Ⅱ型糖尿病 type 2", "Ⅱ型糖尿病 type 2"),
    ],
)
def test_characters_are_simplified_one_by_one(text, expected):
    assert simplify(text) == expected


@settings(max_examples=40)
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
    [result] = NamesIndex.build(["糖尿病肾病"]).find(text)
    assert (result.start, result.end) == offsets
    assert result.text == text[slice(*offsets)]
    [again] = NamesIndex.build(["糖尿病腎病"]).find("糖尿病肾病")
    assert again.name_rows == (0,)
