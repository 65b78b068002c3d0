"""What search by n-grams relies on, looked at once when an index is opened.

The loops of :mod:`biograft.linking.lexical.retrieval` look at no bound, and so read and write
where the numbers of an index send them. After these checks that is always within its arrays.
"""

from __future__ import annotations

import numba
import numpy as np

from biograft.arrays.files import check_ends, check_length, check_range
from biograft.linking.lexical.ngrams import FULL, I64, U32, Vocabulary
from biograft.linking.lexical.weighing import Weights


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
