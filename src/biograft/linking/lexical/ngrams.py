"""Character n-grams of many texts at once, counted and numbered by compiled loops.

A text, with a blank on either side, gives every window of three characters. Chinese, Japanese
and Korean characters say more each, so that windows of such characters alone give single
characters and pairs instead. An n-gram is one 64-bit number: its characters side by side, 21
bits each, so that two n-grams never share a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

_BITS = 21
_STIR = np.uint64(0x9E3779B97F4A7C15)
FULL = 0.5
"""How full a table of n-grams may get."""
_FIRST_SIZE = 1 << 16


class Texts(NamedTuple):
    """Texts one after the other as code points, each between blanks."""

    codes: U32
    starts: I64  # (texts + 1,)


class Vocabulary(NamedTuple):
    """The n-grams there are: an open-addressed table of their keys and numbers."""

    keys: U64  # (table,): 0 where empty
    numbers: U32  # (table,)


def join_texts(texts: Sequence[str]) -> Texts:
    """Lay texts side by side as code points, a blank before the first and after each."""
    joined = " ".join(["", *texts, ""]) if texts else ""
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
    starts = np.zeros(len(texts) + 1, np.int64)
    lengths = np.fromiter((len(text) for text in texts), np.int64, len(texts))
    np.cumsum(lengths + 1, out=starts[1:])
    return Texts(codes, starts)


@numba.njit(inline="always")
def _is_dense(code: int) -> bool:
    """Say whether a character belongs to a script whose characters are syllables or words."""
    return (
        0x2E80 <= code <= 0x9FFF
        or 0xAC00 <= code <= 0xD7FF
        or 0xF900 <= code <= 0xFAFF
        or 0x20000 <= code <= 0x3FFFF
    )


@numba.njit(nogil=True, cache=True)
def grams_of(codes: U32, start: int, end: int, out: U64) -> int:
    """Write the n-grams of the text between two blanks at ``start`` and ``end``; count them."""
    n = 0
    shift = np.uint64(_BITS)
    for place in range(start, end - 1):
        first, second, third = codes[place], codes[place + 1], codes[place + 2]
        a, b, c = np.uint64(first), np.uint64(second), np.uint64(third)
        dense_b = _is_dense(second)
        if not (_is_dense(first) and dense_b and _is_dense(third)):
            out[n] = (a << shift << shift) | (b << shift) | c
            n += 1
        if dense_b:
            out[n] = b
            n += 1
            if _is_dense(third):
                out[n] = (b << shift) | c
                n += 1
    return n


@numba.njit(inline="always")
def find_slot(keys: U64, key: np.uint64) -> np.int64:
    """Find where a key stands in the table, or the empty place where it would."""
    mask = np.uint64(len(keys) - 1)
    mixed = key * _STIR
    slot = (mixed ^ (mixed >> np.uint64(29))) & mask
    while keys[slot] != 0 and keys[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return np.int64(slot)


@numba.njit(nogil=True, cache=True)
def _number_grams(codes: U32, starts: I64, keys: U64, numbers: U32, limit: int) -> tuple[int, int]:
    """Give each n-gram a number in the order they are met; -1 if the table gets too full."""
    widest = 0
    for text in range(len(starts) - 1):
        widest = max(widest, starts[text + 1] - starts[text])
    grams = np.empty(3 * widest + 3, np.uint64)
    n_keys, total = 0, 0
    for text in range(len(starts) - 1):
        n = grams_of(codes, starts[text], starts[text + 1], grams)
        total += n
        for k in range(n):
            slot = find_slot(keys, grams[k])
            if keys[slot] == 0:
                if n_keys >= limit:
                    return -1, 0
                keys[slot] = grams[k]
                numbers[slot] = n_keys
                n_keys += 1
    return n_keys, total


@numba.njit(nogil=True, cache=True)
def _spell_texts(codes: U32, starts: I64, keys: U64, numbers: U32, out: U32, ends: I64) -> None:
    """Write the numbers of the n-grams of every text, in ascending order."""
    widest = 0
    for text in range(len(starts) - 1):
        widest = max(widest, starts[text + 1] - starts[text])
    grams = np.empty(3 * widest + 3, np.uint64)
    place = 0
    for text in range(len(starts) - 1):
        n = grams_of(codes, starts[text], starts[text + 1], grams)
        for k in range(n):
            out[place + k] = numbers[find_slot(keys, grams[k])]
        out[place : place + n].sort()
        place += n
        ends[text + 1] = place


@numba.njit(nogil=True, cache=True)
def count_texts(grams: U32, ends: I64, n_keys: int) -> I64:
    """Count the texts that each n-gram occurs in."""
    frequency = np.zeros(n_keys, np.int64)
    for text in range(len(ends) - 1):
        for place in range(ends[text], ends[text + 1]):
            if place == ends[text] or grams[place] != grams[place - 1]:
                frequency[grams[place]] += 1
    return frequency


@numba.njit(nogil=True, cache=True)
def reorder_texts(grams: U32, ends: I64, order: I64) -> tuple[U32, I64]:
    """Put the n-grams of texts in another order of the texts."""
    moved, new_ends = np.empty_like(grams), np.zeros_like(ends)
    for place, text in enumerate(order):
        start, n = new_ends[place], ends[text + 1] - ends[text]
        moved[start : start + n] = grams[ends[text] : ends[text + 1]]
        new_ends[place + 1] = start + n
    return moved, new_ends


@numba.njit(nogil=True, cache=True)
def invert(grams: U32, ends: I64, n_keys: int) -> tuple[U32, I64]:
    """Turn the n-grams of texts into the texts of n-grams; tell where each n-gram's begin."""
    starts = np.zeros(n_keys + 1, np.int64)
    for gram in grams:
        starts[gram + 1] += 1
    for key in range(n_keys):
        starts[key + 1] += starts[key]
    next_place = starts[:-1].copy()
    postings = np.empty(len(grams), np.uint32)
    for text in range(len(ends) - 1):
        for place in range(ends[text], ends[text + 1]):
            gram = grams[place]
            postings[next_place[gram]] = text
            next_place[gram] += 1
    return postings, starts


def number_grams(texts: Texts) -> tuple[Vocabulary, int, int]:
    """Number the n-grams of all texts; also give how many there are, and how often in all."""
    size = _FIRST_SIZE
    while True:
        keys, numbers = np.zeros(size, np.uint64), np.zeros(size, np.uint32)
        n_keys, total = _number_grams(*texts, keys, numbers, int(size * FULL))
        if n_keys >= 0:
            return Vocabulary(keys, numbers), n_keys, total
        size *= 4


def spell_texts(texts: Texts, vocabulary: Vocabulary, total: int) -> tuple[U32, I64]:
    """Give the n-grams of every text, ascending, and where each text's end."""
    grams, ends = np.empty(total, np.uint32), np.zeros(len(texts.starts), np.int64)
    _spell_texts(*texts, *vocabulary, grams, ends)
    return grams, ends
