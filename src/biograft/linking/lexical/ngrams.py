"""Character n-grams: the vocabulary, postings and TF-IDF weights of a lexical index (numba).

The n-grams of a text, with a space on either side, are all trigrams of characters. Chinese,
Japanese and Korean characters carry more information each, so that windows of such characters
yield unigrams and bigrams instead. An n-gram is encoded as a 64-bit number, 21 bits for each
character, so that distinct n-grams have distinct numbers.
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
"""Maximum load factor of the hash table of n-grams."""
_FIRST_SIZE = 1 << 16


class TextCodes(NamedTuple):
    """Concatenated texts as code points, each between spaces."""

    codes: U32
    starts: I64  # (texts + 1,)


class NgramVocabulary(NamedTuple):
    """The n-grams: a hash table with open addressing from their keys to consecutive ids."""

    keys: U64  # (table,): 0 where empty
    numbers: U32  # (table,)


def join_texts(texts: Sequence[str]) -> TextCodes:
    """Concatenate texts as code points, with a space before the first and after each."""
    joined = " ".join(["", *texts, ""]) if texts else ""
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
    starts = np.zeros(len(texts) + 1, np.int64)
    lengths = np.fromiter((len(text) for text in texts), np.int64, len(texts))
    np.cumsum(lengths + 1, out=starts[1:])
    return TextCodes(codes, starts)


@numba.njit(inline="always")
def _is_dense(code: int) -> bool:
    """Return whether a character belongs to a script whose characters are syllables or words."""
    return (
        0x2E80 <= code <= 0x9FFF
        or 0xAC00 <= code <= 0xD7FF
        or 0xF900 <= code <= 0xFAFF
        or 0x20000 <= code <= 0x3FFFF
    )


@numba.njit(nogil=True, cache=True)
def grams_of(codes: U32, start: int, end: int, out: U64) -> int:
    """Write the n-grams of the text between two spaces at ``start`` and ``end``; count them."""
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
                out[n] = (b << shift) | c
                n += 1
    return n


@numba.njit(inline="always")
def find_slot(keys: U64, key: np.uint64) -> np.int64:
    """Return the slot of a key in the hash table, or the empty slot where it belongs."""
    mask = np.uint64(len(keys) - 1)
    mixed = key * _STIR
    slot = (mixed ^ (mixed >> np.uint64(29))) & mask
    while keys[slot] != 0 and keys[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return np.int64(slot)


@numba.njit(nogil=True, cache=True)
def _index_grams(codes: U32, starts: I64, keys: U64, numbers: U32, limit: int) -> tuple[int, int]:
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


@numba.njit(nogil=True, cache=True)
def _encode_texts(codes: U32, starts: I64, keys: U64, numbers: U32, out: U32, ends: I64) -> None:
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
        out[end : end + n].sort()
        end += n
        ends[text + 1] = end


@numba.njit(nogil=True, cache=True)
def count_texts(grams: U32, ends: I64, n_keys: int) -> I64:
    """Count the texts that contain each n-gram (document frequency)."""
    frequency = np.zeros(n_keys, np.int64)
    for text in range(len(ends) - 1):
        for i in range(ends[text], ends[text + 1]):
            if i == ends[text] or grams[i] != grams[i - 1]:
                frequency[grams[i]] += 1
    return frequency


@numba.njit(nogil=True, cache=True)
def reorder_texts(grams: U32, ends: I64, order: I64) -> tuple[U32, I64]:
    """Reorder texts that are given by their n-grams."""
    moved, new_ends = np.empty_like(grams), np.zeros_like(ends)
    for i, text in enumerate(order):
        start, n = new_ends[i], ends[text + 1] - ends[text]
        moved[start : start + n] = grams[ends[text] : ends[text + 1]]
        new_ends[i + 1] = start + n
    return moved, new_ends


@numba.njit(nogil=True, cache=True)
def invert(grams: U32, ends: I64, n_keys: int) -> tuple[U32, I64]:
    """Invert the n-grams of texts into postings; return them and the start of each list."""
    starts = np.zeros(n_keys + 1, np.int64)
    for gram in grams:
        starts[gram + 1] += 1
    for key in range(n_keys):
        starts[key + 1] += starts[key]
    free = starts[:-1].copy()
    postings = np.empty(len(grams), np.uint32)
    for text in range(len(ends) - 1):
        for i in range(ends[text], ends[text + 1]):
            gram = grams[i]
            postings[free[gram]] = text
            free[gram] += 1
    return postings, starts


def build_vocabulary(texts: TextCodes) -> tuple[NgramVocabulary, int, int]:
    """Build the vocabulary of all texts; also return the number of n-grams, distinct and total."""
    size = _FIRST_SIZE
    while True:
        keys, numbers = np.zeros(size, np.uint64), np.zeros(size, np.uint32)
        n_keys, total = _index_grams(*texts, keys, numbers, int(size * FULL))
        if n_keys >= 0:
            return NgramVocabulary(keys, numbers), n_keys, total
        size *= 4


def encode_texts(texts: TextCodes, vocabulary: NgramVocabulary, total: int) -> tuple[U32, I64]:
    """Return the n-grams of every text, ascending, and the end of each text."""
    grams, ends = np.empty(total, np.uint32), np.zeros(len(texts.starts), np.int64)
    _encode_texts(*texts, *vocabulary, grams, ends)
    return grams, ends


F32 = npt.NDArray[np.float32]

_BLOCKS, _MIN_BLOCK = 128, 4096
"""Number of blocks, and minimum number of texts in a block."""
_MAX_REPEATS = 4
"""Texts are grouped by how often their most frequent n-gram occurs, up to this number."""


class Weights(NamedTuple):
    """The TF-IDF index: n-grams of texts, postings of n-grams, and bounds for blocks of texts."""

    postings: U32  # texts of each n-gram, once for each occurrence
    posting_starts: I64  # (n-grams, blocks + 1): start of each block in each list
    grams: U32  # n-grams of each text, ascending, once for each occurrence
    gram_ends: I64  # (texts + 1,)
    rarity: F32  # (n-grams,)
    inverse_norm: F32  # (texts,)
    ranks: U32  # (texts,): original index; of texts with equal scores the lower wins
    block_starts: I64  # (blocks + 1,)
    shortest: F32  # (blocks,): minimum norm of a text
    longest: F32  # (blocks,): maximum norm
    repeats: I64  # (blocks,): maximum frequency of an n-gram in a text


def weigh(grams: U32, ends: I64, n_grams: int) -> Weights:
    """Compute the TF-IDF weights of texts, given by ascending n-grams, and form blocks."""
    n_texts = len(ends) - 1
    rarity = np.log((1 + n_texts) / (1 + count_texts(grams, ends, n_grams))) + 1
    lengths, repeats = _measure(grams, ends, rarity.astype(np.float32))
    order = np.lexsort((lengths, np.minimum(repeats, _MAX_REPEATS)))
    grams, ends = reorder_texts(grams, ends, order)
    lengths, repeats = lengths[order], repeats[order]
    bounds = _bound_blocks(lengths, repeats)
    postings, starts = invert(grams, ends, n_grams)
    nonzero = lengths > 0
    return Weights(
        postings,
        _cut_lists(postings, starts, bounds[0]),
        grams,
        ends,
        rarity.astype(np.float32),
        np.divide(1, lengths, where=nonzero, out=np.zeros_like(lengths)),
        order.astype(np.uint32),
        *bounds,
    )


@numba.njit(nogil=True, cache=True)
def _measure(grams: U32, ends: I64, rarity: F32) -> tuple[F32, I64]:
    """Compute the norm of every text, and the frequency of its most frequent n-gram."""
    lengths, repeats = np.zeros(len(ends) - 1, np.float32), np.zeros(len(ends) - 1, np.int64)
    for text in range(len(ends) - 1):
        total, run = 0.0, 0
        for i in range(ends[text], ends[text + 1]):
            run += 1
            if i + 1 == ends[text + 1] or grams[i + 1] != grams[i]:
                total += (run * rarity[grams[i]]) ** 2
                repeats[text] = max(repeats[text], run)
                run = 0
        lengths[text] = np.sqrt(total)
    return lengths, repeats


def _bound_blocks(lengths: F32, repeats: I64) -> tuple[I64, F32, F32, I64]:
    """Cut ordered texts into blocks of similar ones; compute the bounds of each block."""
    size = max(_MIN_BLOCK, -(-len(lengths) // _BLOCKS))
    kinds = np.searchsorted(np.minimum(repeats, _MAX_REPEATS), np.arange(_MAX_REPEATS + 2))
    starts = np.concatenate([np.arange(*ends, size) for ends in itertools.pairwise(kinds)])
    block_starts = np.append(starts, len(lengths)).astype(np.int64)
    if not len(starts):
        return block_starts, lengths, lengths, repeats
    shortest, longest = (f.reduceat(lengths, starts) for f in (np.minimum, np.maximum))
    return block_starts, shortest, longest, np.maximum.reduceat(repeats, starts)


@numba.njit(nogil=True, cache=True)
def _cut_lists(postings: U32, starts: I64, block_starts: I64) -> I64:
    """Find the start of each block in each list of postings."""
    cuts = np.empty((len(starts) - 1, len(block_starts)), np.int64)
    for gram in range(len(cuts)):
        texts = postings[starts[gram] : starts[gram + 1]]
        cuts[gram] = starts[gram] + np.searchsorted(texts, block_starts)
    return cuts


def check_vocabulary(vocabulary: NgramVocabulary, n_grams: int) -> None:
    """Refuse a hash table in which a lookup would not end, or would return unknown n-grams."""
    keys, size = vocabulary.keys, len(vocabulary.keys)
    if not size or size & (size - 1):
        raise ValueError(f"keys: expected a power of two, found {size} slots")
    n_keys = int(np.count_nonzero(keys))
    if n_keys != n_grams or n_keys > size * FULL:
        raise ValueError(f"keys: expected {n_grams} keys in {size} slots, found {n_keys}")
    check_length("numbers", vocabulary.numbers, size)
    check_range("numbers", vocabulary.numbers, 0, max(n_grams - 1, 0))


def check_weights(weights: Weights) -> None:
    """Refuse n-grams, texts and blocks that are inconsistent."""
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
    # a weight that rounds to 0 would make a text appear twice
    check_range("rarity", weights.rarity, 1, rarest)
    check_range("inverse_norm", weights.inverse_norm, 0, 1)
    _check_blocks(weights, rarest * len(weights.grams))


def _check_postings(weights: Weights) -> None:
    starts = weights.posting_starts
    if starts.size or weights.postings.size:
        check_ends("posting_starts", starts, len(weights.postings))
    if not _lie_in_blocks(weights.postings, starts, weights.block_starts):
        raise ValueError("postings: texts outside of their blocks")


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
    """Return whether each part of each list holds texts of its block only."""
    for gram in range(starts.shape[0]):
        for block in range(starts.shape[1] - 1):
            first, end = block_starts[block], block_starts[block + 1]
            fits = True
            for i in range(starts[gram, block], starts[gram, block + 1]):
                fits &= first <= postings[i] < end  # no branch, so that it is vectorised
            if not fits:
                return False
    return True
