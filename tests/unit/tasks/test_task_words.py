"""Words and their tokens: the same words for every tokenizer, each told from its neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_tokenizers import byte_tokenizer, unigram_tokenizer

from biograft.corpus.alignment import split_tokens
from biograft.tasks.tokens import TaskTokenizer, tokens_of_words

ENGLISH = "acute cough, diabetes."
CHINESE = "糖尿病患者咳嗽。"
PIECES = ("▁acute", "▁cough", "▁diabetes", "糖尿病", "患者", "咳嗽", ".", ",", "...", "。")


@pytest.fixture
def reading(load):
    """Make an encoder's tokenizer; nothing else of the encoder is asked."""

    def make(tokenizer):
        encoder = load()
        encoder.tokenizer = tokenizer
        return TaskTokenizer(encoder), tokenizer

    return make


def read(text, tokenizer):
    reader, names = tokenizer
    [tokens] = reader.read([text])
    words = np.array(split_tokens(text), np.int64).reshape(-1, 2)
    found = tokens_of_words(text, words, tokens, reader)
    return [
        (text[start:end], names.convert_ids_to_tokens(ids))
        for (start, end), ids in zip(words.tolist(), found, strict=True)
    ]


@pytest.mark.parametrize("style", ["xlm-r", "deberta-v3"])
def test_tokens_of_sentencepiece_come_to_our_words(style, reading):
    tokenizer = reading(unigram_tokenizer(style, PIECES))
    assert read(ENGLISH, tokenizer) == [
        ("acute", ["▁acute"]),
        ("cough", ["▁cough"]),
        (",", [","]),
        ("diabetes", ["▁diabetes"]),
        (".", ["."]),
    ]
    assert read(CHINESE, tokenizer)[1:] == [(char, [char]) for char in CHINESE[1:]]
    assert read("cough...", tokenizer)[1:] == [(".", ["."])] * 3
    assert read("", tokenizer) == []


def test_tokens_of_bytes_that_end_within_a_character(reading):
    """Of ``糖尾`` all bytes but the last are one token here, since ``糖尿`` is one."""
    tokenizer = reading(byte_tokenizer([" cough", "糖尿"]))
    assert tokenizer[1].tokenize("糖尾") != tokenizer[1].tokenize("糖") + tokenizer[1].tokenize(
        "尾"
    )
    assert read("a cough, 糖尾", tokenizer)[1:3] == [("cough", ["Ġcough"]), (",", [","])]
    for together in ("糖尾", "糖尿"):
        alone = [pair for char in together for pair in read(char, tokenizer)]
        assert read(together, tokenizer) == alone


@pytest.mark.parametrize(
    "text",
    [
        "Fever of 3.5 and heart-attack (lung's).",
        "no café, no naïve pain; 糖尿 cancer",
        "CANCER/lung [fever] + 12,000 mg",
    ],
)
def test_words_of_bert_and_their_tokens_are_as_they_were(text, load):
    """Where BERT's own words are ours, each has just the tokens that the tokenizer gives it."""
    encoder = load()
    reader, tokenizer = TaskTokenizer(encoder), encoder.tokenizer
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    expected: dict[int, list[int]] = {}
    bounds: dict[int, list[int]] = {}
    for number, token, (start, end) in zip(
        encoded.word_ids(), encoded["input_ids"], encoded["offset_mapping"], strict=True
    ):
        expected.setdefault(number, []).append(token)
        bounds.setdefault(number, [start, end])[1] = end
    words = np.array(split_tokens(text), np.int64)
    assert words.tolist() == list(bounds.values())
    [tokens] = reader.read([text])
    assert tokens_of_words(text, words, tokens, reader) == list(expected.values())
