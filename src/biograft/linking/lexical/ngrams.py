"""Character n-grams of many texts at once, counted and numbered by compiled loops.

A text, with a blank on either side, gives every window of three characters. Chinese, Japanese
and Korean characters say more each, so that windows of such characters alone give single
characters and pairs instead. An n-gram is one 64-bit number: its characters side by side, 21
bits each, so that two n-grams never share a number.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from biograft.arrays import check_ends, check_length, check_range

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


F32 = npt.NDArray[np.float32]

_BLOCKS, _LEAST_BLOCK = 128, 4096
"""How many blocks there are, and how many texts a block has at least."""
_MOST_REPEATS = 4
"""Texts are told apart by how often an n-gram occurs in them, up to so often."""


class Weights(NamedTuple):
    """The n-grams of all texts from both sides, and how much each counts; the texts in blocks."""

    postings: U32  # texts of each n-gram, repeated as often as it occurs in them
    posting_starts: I64  # (n-grams, blocks + 1): where those of each block begin
    grams: U32  # n-grams of each text, ascending, repeated as they occur
    gram_ends: I64  # (texts + 1,)
    rarity: F32  # (n-grams,)
    inverse_norm: F32  # (texts,)
    ranks: U32  # (texts,): which one of those given; of equally near texts the lower wins
    block_starts: I64  # (blocks + 1,)
    shortest: F32  # (blocks,): least length of a text
    longest: F32  # (blocks,): greatest length
    repeats: I64  # (blocks,): how often an n-gram occurs in a text, at most


def weigh(grams: U32, ends: I64, n_grams: int) -> Weights:
    """Weigh texts, each given by its n-grams in ascending order, and put them in blocks."""
    n_texts = len(ends) - 1
    rarity = np.log((1 + n_texts) / (1 + count_texts(grams, ends, n_grams))) + 1
    lengths, repeats = _measure(grams, ends, rarity.astype(np.float32))
    order = np.lexsort((lengths, np.minimum(repeats, _MOST_REPEATS)))
    grams, ends = reorder_texts(grams, ends, order)
    lengths, repeats = lengths[order], repeats[order]
    bounds = _bound_blocks(lengths, repeats)
    postings, starts = invert(grams, ends, n_grams)
    some = lengths > 0
    return Weights(
        postings,
        _cut_lists(postings, starts, bounds[0]),
        grams,
        ends,
        rarity.astype(np.float32),
        np.divide(1, lengths, where=some, out=np.zeros_like(lengths)),
        order.astype(np.uint32),
        *bounds,
    )


@numba.njit(nogil=True, cache=True)
def _measure(grams: U32, ends: I64, rarity: F32) -> tuple[F32, I64]:
    """Compute the length of every text's vector, and how often its most frequent n-gram occurs."""
    lengths, repeats = np.zeros(len(ends) - 1, np.float32), np.zeros(len(ends) - 1, np.int64)
    for text in range(len(ends) - 1):
        total, run = 0.0, 0
        for place in range(ends[text], ends[text + 1]):
            run += 1
            if place + 1 == ends[text + 1] or grams[place + 1] != grams[place]:
                total += (run * rarity[grams[place]]) ** 2
                repeats[text] = max(repeats[text], run)
                run = 0
        lengths[text] = np.sqrt(total)
    return lengths, repeats


def _bound_blocks(lengths: F32, repeats: I64) -> tuple[I64, F32, F32, I64]:
    """Cut texts that are in order into blocks of alike ones; find what bounds each block."""
    size = max(_LEAST_BLOCK, -(-len(lengths) // _BLOCKS))
    kinds = np.searchsorted(np.minimum(repeats, _MOST_REPEATS), np.arange(_MOST_REPEATS + 2))
    starts = np.concatenate([np.arange(*ends, size) for ends in itertools.pairwise(kinds)])
    block_starts = np.append(starts, len(lengths)).astype(np.int64)
    if not len(starts):
        return block_starts, lengths, lengths, repeats
    shortest, longest = (f.reduceat(lengths, starts) for f in (np.minimum, np.maximum))
    return block_starts, shortest, longest, np.maximum.reduceat(repeats, starts)


@numba.njit(nogil=True, cache=True)
def _cut_lists(postings: U32, starts: I64, block_starts: I64) -> I64:
    """Find where the texts of each block begin in each list."""
    cuts = np.empty((len(starts) - 1, len(block_starts)), np.int64)
    for gram in range(len(cuts)):
        texts = postings[starts[gram] : starts[gram + 1]]
        cuts[gram] = starts[gram] + np.searchsorted(texts, block_starts)
    return cuts


def check_vocabulary(vocabulary: Vocabulary, n_grams: int) -> None:
    """Refuse a table in which a search would not end, or find n-grams that there are not."""
    keys, size = vocabulary.keys, len(vocabulary.keys)
    if not size or size & (size - 1):
        raise ValueError(f"keys: expected a power of two, found {size} places")
    found = int(np.count_nonzero(keys))
    if found != n_grams or found > size * FULL:
        raise ValueError(f"keys: expected {n_grams} keys in {size} places, found {found}")
    check_length("numbers", vocabulary.numbers, size)
    check_range("numbers", vocabulary.numbers, 0, max(n_grams - 1, 0))


def check_weights(weights: Weights) -> None:
    """Refuse n-grams, texts and blocks that do not fit together."""
    n_texts, n_grams = len(weights.inverse_norm), len(weights.rarity)
    n_blocks = len(weights.shortest)
    check_length("block_starts", weights.block_starts, n_blocks + 1)
    check_ends("block_starts", weights.block_starts, n_texts)
    check_length("posting_starts", weights.posting_starts, n_grams, n_blocks + 1)
    check_length("gram_ends", weights.gram_ends, n_texts + 1)
    check_ends("gram_ends", weights.gram_ends, len(weights.grams))
    check_length("postings", weights.postings, len(weights.grams))
    check_range("grams", weights.grams, 0, n_grams - 1)
    check_length("ranks", weights.ranks, n_texts)
    check_range("ranks", weights.ranks, 0, n_texts - 1)
    _check_postings(weights)
    rarest = float(np.log(1 + n_texts) + 1)
    # a share that rounds to nothing would let a text be met twice
    check_range("rarity", weights.rarity, 1, rarest)
    check_range("inverse_norm", weights.inverse_norm, 0, 1)
    _check_blocks(weights, rarest * len(weights.grams))


def _check_postings(weights: Weights) -> None:
    starts = weights.posting_starts
    if starts.size or weights.postings.size:
        check_ends("posting_starts", starts, len(weights.postings))
    if not _lie_in_blocks(weights.postings, starts, weights.block_starts):
        raise ValueError("postings: texts do not lie in the blocks where they stand")


def _check_blocks(weights: Weights, largest: float) -> None:
    n_blocks = len(weights.shortest)
    for name, bounds in (("longest", weights.longest), ("repeats", weights.repeats)):
        check_length(name, bounds, n_blocks)
    check_range("shortest", weights.shortest, 0, largest)
    check_range("longest", weights.longest, 0, largest)
    check_range("repeats", weights.repeats, 0, len(weights.postings))
    starts = weights.posting_starts
    used = (starts[:, 1:] > starts[:, :-1]).any(axis=0)
    check_range("shortest", weights.shortest[used], 1, largest)
    check_range("repeats", weights.repeats[used], 1, len(weights.postings))


@numba.njit(nogil=True, cache=True)
def _lie_in_blocks(postings: U32, starts: I64, block_starts: I64) -> bool:
    """Say whether each part of each list holds texts of its block; the starts are within."""
    for gram in range(starts.shape[0]):
        for block in range(starts.shape[1] - 1):
            least, above = block_starts[block], block_starts[block + 1]
            fits = True
            for place in range(starts[gram, block], starts[gram, block + 1]):
                fits &= least <= postings[place] < above  # without a branch: many at once
            if not fits:
                return False
    return True
