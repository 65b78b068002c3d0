"""Character n-grams: the vocabulary, TF-IDF weights and blocks of a lexical index (numba).

The n-grams of a text, with a space on either side, are all trigrams of characters. Chinese,
Japanese and Korean characters carry more information each, so that windows of such characters
yield unigrams and bigrams instead. An n-gram is encoded as a 64-bit number, 21 bits for each
character, so that distinct n-grams have distinct numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.arrays import Bytes, Float32s, Ints, Uint64s, Uints
from biograft.artifacts import check_range
from biograft.compute import njit

U16 = npt.NDArray[np.uint16]

_BITS = 21
_STIR = np.uint64(0x9E3779B97F4A7C15)
FULL = 0.5
"""Maximum load factor of the hash table of n-grams."""
_FIRST_SIZE = 1 << 16


class TextCodes(NamedTuple):
    """Concatenated texts as code points, each between spaces."""

    codes: Uints
    starts: Ints  # (texts + 1,)


class NgramVocabulary(NamedTuple):
    """The n-grams: a hash table with open addressing from their keys to consecutive ids."""

    keys: Uint64s  # (table,): 0 where empty
    numbers: Uints  # (table,)


def join_texts(texts: Sequence[str]) -> TextCodes:
    """Concatenate texts as code points, with a space before the first and after each."""
    joined = " ".join(["", *texts, ""]) if texts else ""
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
    starts = np.zeros(len(texts) + 1, np.int64)
    lengths = np.fromiter((len(text) for text in texts), np.int64, len(texts))
    np.cumsum(lengths + 1, out=starts[1:])
    return TextCodes(codes, starts)


@njit(inline="always")
def _is_dense(code: int) -> bool:
    """Return whether a character belongs to a script whose characters are syllables or words."""
    return (
        0x2E80 <= code <= 0x9FFF
        or 0xAC00 <= code <= 0xD7FF
        or 0xF900 <= code <= 0xFAFF
        or 0x20000 <= code <= 0x3FFFF
    )


@njit(inline="always")
def pair_key(first: int, second: int) -> Any:
    """Return the key of a bigram.

    Args:
        first: Code point of its first character.
        second: Code point of the second.
    """
    return (np.uint64(first) << np.uint64(_BITS)) | np.uint64(second)


@njit()
def grams_of(codes: Uints, start: int, end: int, out: Uint64s) -> int:
    """Write the n-grams of the text between two spaces at ``start`` and ``end``; count them.

    Args:
        codes: Code points of texts.
        start: Offset of the space before the text.
        end: Offset of the space after it.
        out: Keys of the n-grams, written from the first place on.
    """
    n = 0
    shift = np.uint64(_BITS)
    for i in range(start, end - 1):
        first, second, third = codes[i], codes[i + 1], codes[i + 2]
        a, b, c = np.uint64(first), np.uint64(second), np.uint64(third)
        dense_b = _is_dense(second)
        if not (_is_dense(first) and dense_b and _is_dense(third)):
            out[n] = (a << shift << shift) | (b << shift) | c
            n += 1
        if dense_b:
            out[n] = b
            n += 1
            if _is_dense(third):
                out[n] = pair_key(second, third)
                n += 1
    return n


@njit()
def find_slot(keys: Uint64s, key: np.uint64) -> np.int64:
    """Return the slot of a key in the hash table, or the empty slot where it belongs.

    Args:
        keys: Hash table: the keys, 0 where a slot is empty.
        key: The key.
    """
    mask = np.uint64(len(keys) - 1)
    mixed = key * _STIR
    slot = (mixed ^ (mixed >> np.uint64(29))) & mask
    while keys[slot] != 0 and keys[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return np.int64(slot)


@njit()
def sort_few(values: Any, start: int, end: int) -> None:
    """Sort a short run in place (Shell's sort, which numba compiles faster than its own).

    Args:
        values: Array of numbers.
        start: Start of the run.
        end: Its end.
    """
    gap = 1
    while 3 * gap < end - start:
        gap = 3 * gap + 1
    while gap:
        for i in range(start + gap, end):
            value, at = values[i], i
            while at >= start + gap and values[at - gap] > value:
                values[at] = values[at - gap]
                at -= gap
            values[at] = value
        gap //= 3


@njit()
def _index_grams(
    codes: Uints, starts: Ints, keys: Uint64s, numbers: Uints, limit: int
) -> tuple[int, int]:
    """Assign ids to n-grams in order of appearance; return -1 if the table gets too full."""
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


@njit()
def _encode_texts(
    codes: Uints, starts: Ints, keys: Uint64s, numbers: Uints, out: Uints, ends: Ints
) -> None:
    """Write the ids of the n-grams of every text, in ascending order."""
    widest = 0
    for text in range(len(starts) - 1):
        widest = max(widest, starts[text + 1] - starts[text])
    grams = np.empty(3 * widest + 3, np.uint64)
    end = 0
    for text in range(len(starts) - 1):
        n = grams_of(codes, starts[text], starts[text + 1], grams)
        for k in range(n):
            out[end + k] = numbers[find_slot(keys, grams[k])]
        sort_few(out, end, end + n)
        end += n
        ends[text + 1] = end


@njit()
def count_texts(grams: Uints, ends: Ints, n_keys: int) -> Ints:
    """Count the texts that contain each n-gram (document frequency).

    Args:
        grams: N-grams of the texts, ascending in each.
        ends: Start of the first text, then the end of each.
        n_keys: Number of distinct n-grams.
    """
    frequency = np.zeros(n_keys, np.int64)
    for text in range(len(ends) - 1):
        for i in range(ends[text], ends[text + 1]):
            if i == ends[text] or grams[i] != grams[i - 1]:
                frequency[grams[i]] += 1
    return frequency


@njit()
def reorder_texts(grams: Uints, ends: Ints, order: Ints) -> tuple[Uints, Ints]:
    """Reorder texts that are given by their n-grams.

    Args:
        grams: N-grams of the texts.
        ends: Start of the first text, then the end of each.
        order: Old number of each text, in the new order.
    """
    moved, new_ends = np.empty_like(grams), np.zeros_like(ends)
    for i, text in enumerate(order):
        start, n = new_ends[i], ends[text + 1] - ends[text]
        for k in range(n):  # numba compiles a loop in a tenth of the time of an assigned slice
            moved[start + k] = grams[ends[text] + k]
        new_ends[i + 1] = start + n
    return moved, new_ends


def build_vocabulary(texts: TextCodes) -> tuple[NgramVocabulary, int, int]:
    """Build the vocabulary of all texts; also return the number of n-grams, distinct and total."""
    size = _FIRST_SIZE
    while True:
        keys, numbers = np.zeros(size, np.uint64), np.zeros(size, np.uint32)
        n_keys, total = _index_grams(*texts, keys, numbers, int(size * FULL))
        if n_keys >= 0:
            return NgramVocabulary(keys, numbers), n_keys, total
        size *= 4


def encode_texts(texts: TextCodes, vocabulary: NgramVocabulary, total: int) -> tuple[Uints, Ints]:
    """Return the n-grams of every text, ascending, and the end of each text.

    Args:
        texts: Code points of the texts.
        vocabulary: N-grams that are known.
        total: Number of n-grams in all texts.
    """
    grams, ends = np.empty(total, np.uint32), np.zeros(len(texts.starts), np.int64)
    _encode_texts(*texts, *vocabulary, grams, ends)
    return grams, ends


ROUNDING = 1e-4
"""Tolerance for rounding errors of scores."""

_BLOCK = 8
"""Texts of a block; the bounds of larger blocks exclude too few texts."""
_IN_MANY = 0.1
"""An n-gram in more than this ratio of the blocks has a row in the table instead of a list."""
MAX_IMPACT = 255
_RANK_BITS = 21


class Weights(NamedTuple):
    """The TF-IDF index: the n-grams of texts, and the impact of each n-gram on blocks of texts.

    The impact of an n-gram on a text is its weight in the text's normalised vector. On a block it
    is the largest impact on one of its texts, rounded up to a multiple of ``largest / 255``.
    """

    grams: Uints  # n-grams of each text, ascending, once for each occurrence
    gram_ends: Ints  # (texts + 1,)
    rarity: Float32s  # (n-grams,)
    inverse_norm: Float32s  # (texts,)
    ranks: Uints  # (texts,): original index; of texts with equal scores the lower wins
    block_starts: Ints  # (blocks + 1,)
    largest: Float32s  # (n-grams,): largest impact on a text
    table_rows: Ints  # (n-grams,): row of an n-gram in ``table``; -1 if it has a list
    table: Bytes  # (n-grams in many blocks, blocks): impacts
    list_starts: Ints  # (n-grams + 1,): the lists of n-grams in few blocks
    list_blocks: Uints  # ascending in each list
    list_impacts: Bytes


def weigh(grams: Uints, ends: Ints, n_grams: int) -> Weights:
    """Compute the TF-IDF weights of texts, given by ascending n-grams, and form blocks.

    Args:
        grams: N-grams of the texts, ascending in each.
        ends: Start of the first text, then the end of each.
        n_grams: Number of distinct n-grams.
    """
    n_texts = len(ends) - 1
    frequency = count_texts(grams, ends, n_grams)
    rarity = (np.log((1 + n_texts) / (1 + frequency)) + 1).astype(np.float32)
    order = _cluster(grams, ends, frequency)
    grams, ends = reorder_texts(grams, ends, order)
    lengths = _measure(grams, ends, rarity)
    inverse_norm = np.divide(1, lengths, where=lengths > 0, out=np.zeros_like(lengths))
    block_starts = np.append(np.arange(0, n_texts, _BLOCK), n_texts).astype(np.int64)
    n_blocks = len(block_starts) - 1
    largest, counts = _survey(grams, ends, block_starts, rarity, inverse_norm)
    in_table = counts > _IN_MANY * n_blocks
    table_rows = np.where(in_table, np.cumsum(in_table) - 1, -1)
    list_starts = np.zeros(n_grams + 1, np.int64)
    np.cumsum(np.where(in_table, 0, counts), out=list_starts[1:])
    table = np.zeros((int(in_table.sum()), n_blocks), np.uint8)
    list_blocks = np.zeros(list_starts[-1], np.uint32)
    list_impacts = np.zeros(list_starts[-1], np.uint8)
    weights = Weights(
        grams,
        ends,
        rarity,
        inverse_norm,
        order.astype(np.uint32),
        block_starts,
        largest,
        table_rows,
        table,
        list_starts,
        list_blocks,
        list_impacts,
    )
    _fill_impacts(weights)
    return weights


def _cluster(grams: Uints, ends: Ints, frequency: Ints) -> Ints:
    """Return an order of texts in which those with the same rare n-grams are neighbours."""
    ranks = np.empty(len(frequency), np.int64)
    ranks[np.argsort(frequency, kind="stable")] = np.arange(len(frequency))
    return np.argsort(_rarest(grams, ends, ranks), kind="stable")


@njit()
def _rarest(grams: Uints, ends: Ints, ranks: Ints) -> Ints:
    """Pack the ranks of the three rarest distinct n-grams of each text into a number."""
    last = (1 << _RANK_BITS) - 1
    keys = np.empty(len(ends) - 1, np.int64)
    for text in range(len(keys)):
        a, b, c = last, last, last  # ascending
        for i in range(ends[text], ends[text + 1]):
            if i > ends[text] and grams[i] == grams[i - 1]:
                continue
            rank = min(ranks[grams[i]], last)
            if rank < a:
                a, b, c = rank, a, b
            elif rank < b:
                b, c = rank, b
            elif rank < c:
                c = rank
        keys[text] = ((a << _RANK_BITS) | b) << _RANK_BITS | c
    return keys


@njit()
def _measure(grams: Uints, ends: Ints, rarity: Float32s) -> Float32s:
    """Compute the norm of every text."""
    lengths = np.zeros(len(ends) - 1, np.float32)
    for text in range(len(ends) - 1):
        total, run = 0.0, 0
        for i in range(ends[text], ends[text + 1]):
            run += 1
            if i + 1 == ends[text + 1] or grams[i + 1] != grams[i]:
                total += (run * rarity[grams[i]]) ** 2
                run = 0
        lengths[text] = np.sqrt(total)
    return lengths


@njit()
def _survey(
    grams: Uints, ends: Ints, block_starts: Ints, rarity: Float32s, inverse_norm: Float32s
) -> tuple[Float32s, Ints]:
    """Find the largest impact of each n-gram, and count the blocks in which it occurs."""
    largest, counts = np.zeros(len(rarity), np.float32), np.zeros(len(rarity), np.int64)
    last_block = np.full(len(rarity), -1, np.int64)
    for block in range(len(block_starts) - 1):
        for text in range(block_starts[block], block_starts[block + 1]):
            run = 0
            for i in range(ends[text], ends[text + 1]):
                gram = grams[i]
                run = run + 1 if i > ends[text] and grams[i - 1] == gram else 1
                largest[gram] = max(largest[gram], run * rarity[gram] * inverse_norm[text])
                if last_block[gram] != block:
                    last_block[gram] = block
                    counts[gram] += 1
    return largest, counts


@njit()
def _fill_impacts(weights: Weights) -> None:
    """Write the impact of each n-gram on each block, rounded up, into the table and the lists."""
    free = weights.list_starts[:-1].copy()
    last_block = np.full(len(weights.rarity), -1, np.int64)
    ends, starts = weights.gram_ends, weights.block_starts
    for block in range(len(starts) - 1):
        for text in range(starts[block], starts[block + 1]):
            run = 0
            for i in range(ends[text], ends[text + 1]):
                gram = weights.grams[i]
                run = run + 1 if i > ends[text] and weights.grams[i - 1] == gram else 1
                exact = run * weights.rarity[gram] * weights.inverse_norm[text]
                ratio = exact / weights.largest[gram]
                impact = np.uint8(min(int(ratio * MAX_IMPACT) + 1, MAX_IMPACT))
                row = weights.table_rows[gram]
                if row >= 0:
                    weights.table[row, block] = max(weights.table[row, block], impact)
                    continue
                if last_block[gram] != block:
                    last_block[gram] = block
                    weights.list_blocks[free[gram]] = block
                    free[gram] += 1
                at = free[gram] - 1
                weights.list_impacts[at] = max(weights.list_impacts[at], impact)


def check_vocabulary(vocabulary: NgramVocabulary, n_grams: int) -> None:
    """Refuse a hash table in which a lookup would not end, or would return unknown n-grams.

    Args:
        vocabulary: Hash table of n-grams.
        n_grams: Number of n-grams that it must have.
    """
    keys, size = vocabulary.keys, len(vocabulary.keys)
    if not size or size & (size - 1):
        raise ValueError(f"keys: expected a power of two, found {size} slots")
    n_keys = int(np.count_nonzero(keys))
    if n_keys != n_grams or n_keys > size * FULL:
        raise ValueError(f"keys: expected {n_grams} keys in {size} slots, found {n_keys}")
    check_range("numbers", vocabulary.numbers, 0, max(n_grams - 1, 0))
