"""Stretches of text to tokens: against plain loops, and against what a tokenizer makes of text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from tiny_models import tiny_tokenizer

from biograft.corpus.alignment import align_spans, word_numbers


def plain_align(offsets, spans):
    """The rule, token by token and span by span."""
    found = []
    for start, end in spans:
        held = [
            token
            for token, (first, last) in enumerate(offsets)
            if max(start, first) < min(end, last)
        ]
        found.append((held[0], held[-1]) if held else (-1, -1))
    return found


@st.composite
def texts(draw):
    """Offsets of tokens that follow each other with gaps, special ones among them."""
    offsets, place = [], 0
    for _ in range(draw(st.integers(0, 8))):
        if draw(st.booleans()) and draw(st.booleans()):
            offsets.append((0, 0))
        start = place + draw(st.integers(0, 2))
        place = start + draw(st.integers(1, 3))
        offsets.append((start, place))
    spans = draw(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=6))
    return offsets, spans


@settings(deadline=None)
@given(texts())
def test_it_is_the_rule(case):
    offsets, spans = case
    assert align_spans(offsets, spans).tolist() == [list(p) for p in plain_align(offsets, spans)]


@settings(deadline=None)
@given(texts())
def test_a_word_has_the_tokens_that_share_a_character(case):
    offsets, _ = case
    words = [(3 * k, 3 * k + 2) for k in range(9)]
    expected = []
    for first, last in offsets:
        held = [n for n, (a, b) in enumerate(words) if max(a, first) < min(b, last)]
        expected.append(held[0] if held else -1)
    assert word_numbers(offsets, words).tolist() == expected


def test_nothing_comes_of_nothing():
    assert align_spans([], [(0, 3)]).tolist() == [[-1, -1]]
    assert align_spans([(0, 3)], []).shape == (0, 2)
    assert word_numbers([(0, 3)], []).tolist() == [-1]
    assert word_numbers([], [(0, 3)]).shape == (0,)


@pytest.mark.parametrize(
    ("text", "mention", "tokens"),
    [
        ("An acute myocardial infarction.", "myocardial infarction", "myocardial infarction"),
        ("Ménière's disease", "Ménière", "meniere"),
        ("2-(4-isobutylphenyl)propionic acid", "isobutylphenyl", "isobutylphenyl"),
        ("患者有急性心肌梗死病史。", "心肌梗死", "心肌梗死"),
        ("服用aspirin后好转", "aspirin", "aspirin"),
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
    pieces = tokenizer.convert_ids_to_tokens(encoding["input_ids"])[first : last + 1]
    assert "".join(pieces).replace("##", "") == tokens.replace(" ", "")


def test_part_of_a_token_has_the_whole_token():
    tokenizer = tiny_tokenizer(["antidiabetic drugs"])
    offsets = tokenizer("antidiabetic drugs", return_offsets_mapping=True)["offset_mapping"]
    assert align_spans(offsets, [(4, 12)]).tolist() == [[1, 1]]
    assert np.array_equal(word_numbers(offsets, [(0, 12), (13, 18)]), [-1, 0, 1, -1])
