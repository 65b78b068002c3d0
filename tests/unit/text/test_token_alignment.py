"""Alignment of spans and tokens, against plain loops and a real tokenizer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from tiny_models import tiny_tokenizer

from biograft.text import align_spans, split_tokens


def plain_align(offsets, spans):
    """The rule, token by token and span by span."""
    aligned = []
    for start, end in spans:
        covered = [
            token
            for token, (first, last) in enumerate(offsets)
            if max(start, first) < min(end, last)
        ]
        aligned.append((covered[0], covered[-1]) if covered else (-1, -1))
    return aligned


@st.composite
def texts(draw):
    """Offsets of tokens that follow each other with gaps, special ones among them."""
    offsets, position = [], 0
    for _ in range(draw(st.integers(0, 8))):
        if draw(st.booleans()) and draw(st.booleans()):
            offsets.append((0, 0))
        start = position + draw(st.integers(0, 2))
        position = start + draw(st.integers(1, 3))
        offsets.append((start, position))
    spans = draw(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=6))
    return offsets, spans


@settings(deadline=None)
@given(texts())
def test_align_spans_equals_plain_loops(case):
    offsets, spans = case
    assert align_spans(offsets, spans).tolist() == [list(p) for p in plain_align(offsets, spans)]


@pytest.mark.parametrize(
    ("text", "mention", "tokens"),
    [
        ("An acute myocardial infarction.", "myocardial infarction", "myocardial infarction"),
        ("Ménière's disease", "Ménière", "meniere"),
        ("患者有急性心肌梗死病史。", "心肌梗死", "心肌梗死"),
        ("β-thalassemia\u00a0major", "thalassemia\u00a0major", "thalassemia major"),
    ],
)
def test_a_mention_is_found_by_the_offsets_of_a_tokenizer(text, mention, tokens):
    tokenizer = tiny_tokenizer([text.lower()[:4], text, mention])
    encoding = tokenizer(text, return_offsets_mapping=True)
    offsets, start = encoding["offset_mapping"], text.index(mention)
    first, last = align_spans(offsets, [(start, start + len(mention))])[0]
    assert text[offsets[first][0] : offsets[last][1]] == mention
    assert offsets[first - 1][1] <= start
    assert offsets[last + 1] == (0, 0) or offsets[last + 1][0] >= start + len(mention)
    subwords = tokenizer.convert_ids_to_tokens(encoding["input_ids"])[first : last + 1]
    assert "".join(subwords).replace("##", "") == tokens.replace(" ", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("acute cough, 3.5 mg", ["acute", "cough", ",", "3", ".", "5", "mg"]),
        ("Crohn's heart-attack", ["Crohn", "'", "s", "heart", "-", "attack"]),
        ("TNF_a ≥5°C", ["TNF", "_", "a", "≥", "5", "°", "C"]),
        ("糖尿病IL6型。", ["糖", "尿", "病", "IL6", "型", "。"]),
        (" \n", []),
    ],
)
def test_tokens_are_words_characters_and_punctuation(text, expected):
    assert [text[start:end] for start, end in split_tokens(text)] == expected
