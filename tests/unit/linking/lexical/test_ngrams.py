"""N-grams of texts: what they are, how they are numbered, against plain loops."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import numpy as np
import pytest

from biograft.linking.lexical.ngrams import (
    build_vocabulary,
    count_texts,
    encode_texts,
    find_slot,
    grams_of,
    join_texts,
)

DENSE = "糖尿病型心臓的한글"
LETTERS = "abcdé αβ2-" + DENSE + "😀\U00020000"


def is_dense(char: str) -> bool:
    return char in DENSE + "\U00020000"


def plain_grams(text: str) -> Counter[str]:
    """The same n-grams as strings, by the words of the module."""
    padded = f" {text} "
    found: Counter[str] = Counter()
    for position in range(len(padded) - 2):
        window = padded[position : position + 3]
        if not all(map(is_dense, window)):
            found[window] += 1
        if is_dense(window[1]):
            found[window[1]] += 1
            if is_dense(window[2]):
                found[window[1:]] += 1
    return found


def decode(key: int) -> str:
    codes = [(key >> shift) & ((1 << 21) - 1) for shift in (42, 21, 0)]
    return "".join(chr(code) for code in codes if code)


def grams(text: str) -> Counter[str]:
    codes, starts = join_texts(["x", text, "y"])
    out = np.zeros(3 * len(codes), np.uint64)
    n = grams_of(codes, starts[1], starts[2], out)
    return Counter(decode(int(key)) for key in out[:n])


@pytest.mark.parametrize("text", ["", "a", "ab", "flu", "糖", "糖尿病", "2型糖尿病 type", "😀 é"])
def test_the_grams_of_a_text(text):
    assert grams(text) == plain_grams(text)


def test_a_letter_beside_han_is_a_window_and_han_alone_are_singles_and_pairs():
    assert grams("糖尿病") == Counter([" 糖尿", "尿病 ", "糖", "尿", "病", "糖尿", "尿病"])
    assert grams("flu") == Counter([" fl", "flu", "lu "])


def random_texts(n: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices(LETTERS, k=rng.randrange(12))) for _ in range(n)]


def test_the_vocabulary_numbers_every_gram_once():
    texts = random_texts(300, 1)
    joined = join_texts(texts)
    vocabulary, n_grams, total = build_vocabulary(joined)
    expected = sum(map(plain_grams, texts), Counter())
    held = {
        decode(int(key)): int(number)
        for key, number in zip(vocabulary.keys, vocabulary.numbers, strict=True)
        if key
    }
    assert held.keys() == expected.keys()
    assert sorted(held.values()) == list(range(n_grams))
    assert total == expected.total()
    spelled, ends = encode_texts(joined, vocabulary, total)
    for row, text in enumerate(texts):
        own = spelled[ends[row] : ends[row + 1]].tolist()
        assert own == sorted(held[gram] for gram in plain_grams(text).elements())


def test_the_table_grows_with_the_grams():
    texts = [chr(0x4E00 + a) + chr(0x5E00 + b) for a in range(250) for b in range(250)]
    vocabulary, n_grams, _ = build_vocabulary(join_texts(texts))
    assert n_grams == len(set().union(*(f for f in map(plain_grams_of_han, texts))))
    assert (vocabulary.keys > 0).sum() == n_grams <= len(vocabulary.keys) // 2
    missing = np.uint64(12345)
    assert vocabulary.keys[find_slot(vocabulary.keys, missing)] == 0


def plain_grams_of_han(text: str) -> set[str]:
    return {f" {text}", f"{text} ", text[0], text[1], text}


def test_the_number_of_texts_of_a_gram():
    texts = random_texts(200, 2)
    joined = join_texts(texts)
    vocabulary, n_grams, total = build_vocabulary(joined)
    spelled, ends = encode_texts(joined, vocabulary, total)
    of_texts = [set(spelled[a:b].tolist()) for a, b in itertools.pairwise(ends.tolist())]
    expected = [sum(gram in grams for grams in of_texts) for gram in range(n_grams)]
    assert count_texts(spelled, ends, n_grams).tolist() == expected


def test_no_text_at_all():
    joined = join_texts([])
    assert (joined.codes.tolist(), joined.starts.tolist()) == ([], [0])
    vocabulary, n_grams, total = build_vocabulary(joined)
    assert (n_grams, total) == (0, 0)
    assert not vocabulary.keys.any()


def test_half_a_surrogate_is_a_character_like_others():
    assert grams("a\ud800b") == Counter([" a\ud800", "a\ud800b", "\ud800b "])
