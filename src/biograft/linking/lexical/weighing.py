"""What search by n-grams needs to know of all texts: their n-grams, weights, and blocks of them.

Texts stand in order of their length (of their vector's, that is), in blocks, those whose n-grams
repeat apart from the others, so that what a text can score is bounded for all of a block at once.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from biograft.linking.lexical.ngrams import I64, U32, count_texts, invert, reorder_texts

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
