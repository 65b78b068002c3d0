"""Exact top-k search by TF-IDF cosine over n-grams, with bounds for blocks of texts.

Texts with the same rare n-grams lie beside each other, in small blocks. For each block the index
holds the largest impact of every n-gram on one of its texts (block-max, as in Ding and Suel, 2011,
and in BMP of Mallia et al., 2024). The sum of these impacts, weighted by the query, is an upper
bound of all scores in the block. A query first bounds all blocks. Then it scores the texts of the
blocks with the highest bounds, from their own n-grams, until no other block can hold one of the
best k. All texts of a block are scored in the same order of additions as in a full comparison, so
that the results are the same, ties included.

Loops compiled by numba check no index. What is read of the large arrays is checked here as it is
read, so that an index is opened without reading all of it; damage is a ``ValueError``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from biograft.compiled import njit
from biograft.linking.lexical.ngrams import (
    F32,
    I64,
    MAX_IMPACT,
    ROUNDING,
    U32,
    NgramVocabulary,
    TextCodes,
    Weights,
    find_slot,
    grams_of,
)
from biograft.linking.lexical.plain_search import score_few, search_few

_TILE = 8192
"""Blocks bounded at once, whose bounds stay in the cache."""
_GROUP = 64
"""Blocks of a group; groups are visited by their highest bound."""
_LEVELS = 256
"""Groups are sorted by their highest bound, rounded down to one of these levels."""
_FIRST_GROUPS, _BLOCKS_FOR = 8, 2
"""Groups whose best blocks are scored first, for an early minimum of the best k scores: at least so
many, and one for so many of the k."""


class _Query(NamedTuple):
    """The n-grams of a query."""

    grams: U32
    components: F32  # of the query's normalised vector
    weights: F32  # (n-grams of all texts,): contribution of an occurrence, times the text's norm


class _Best(NamedTuple):
    """The best texts so far: higher scores first, ties by the lower rank."""

    texts: I64
    scores: F32


def _work(queries: TextCodes, _: NgramVocabulary, weights: Weights, *__: object) -> int:
    """Estimate the steps of a search by numpy: they depend on the blocks that are bounded."""
    return (len(queries.starts) - 1) * (400 + len(weights.block_starts) // 100)


@njit()
def _weigh_query(
    queries: TextCodes, q: int, vocabulary: NgramVocabulary, rarity: F32, unknown: float, added: F32
) -> _Query:
    """Return the known n-grams of a query and their weights, normalised to a norm of 1.

    The contribution of each occurrence in a text is written to ``added``, which is zero before.
    """
    start, end = queries.starts[q], queries.starts[q + 1]
    keys = np.empty(3 * (end - start) + 3, np.uint64)
    n = grams_of(queries.codes, start, end, keys)
    keys[:n].sort()
    grams, weights = np.empty(n, np.uint32), np.empty(n, np.float32)
    m, square, k = 0, 0.0, 0
    while k < n:
        times = 1
        while k + times < n and keys[k + times] == keys[k]:
            times += 1
        slot = find_slot(vocabulary.keys, keys[k])
        if vocabulary.keys[slot] == 0:
            square += (times * unknown) * (times * unknown)
        else:
            grams[m] = vocabulary.numbers[slot]
            weights[m] = times * rarity[grams[m]]
            square += np.float64(weights[m]) * np.float64(weights[m])
            m += 1
        k += times
    if square > 0:
        weights[:m] /= np.sqrt(square)
    for k in range(m):
        added[grams[k]] = weights[k] * rarity[grams[k]]
    return _Query(grams[:m], weights[:m], added)


@njit()
def _score(text: int, query: F32, weights: Weights) -> float:
    """Compute the cosine of one text, always summing in the same order."""
    start, end = weights.gram_ends[text], weights.gram_ends[text + 1]
    if not 0 <= start <= end <= len(weights.grams):
        raise ValueError("gram_ends: positions out of range")
    total = np.float32(0)
    n_grams = np.uint32(len(query))
    for i in range(start, end):
        gram = weights.grams[i]
        if gram >= n_grams:
            raise ValueError("grams: numbers out of range")
        total += query[gram]
    cosine: float = total * weights.inverse_norm[text]
    if not 0 <= cosine <= 1 + ROUNDING:
        raise ValueError("inverse_norm: numbers out of range")
    return cosine


@njit()
def _insert(text: int, score: float, best: _Best, n: int, ranks: U32) -> int:
    """Insert a text into the sorted top k: higher scores first, ties by the lower rank."""
    texts, scores = best.texts, best.scores
    k = len(texts)
    if n == k and (
        score < scores[k - 1] or (score == scores[k - 1] and ranks[text] > ranks[texts[k - 1]])
    ):
        return n
    i = min(n, k - 1)
    while i > 0 and (
        scores[i - 1] < score or (scores[i - 1] == score and ranks[texts[i - 1]] > ranks[text])
    ):
        texts[i], scores[i] = texts[i - 1], scores[i - 1]
        i -= 1
    texts[i], scores[i] = text, score
    return min(n + 1, k)


@njit()
def _bound_blocks(query: _Query, weights: Weights, bounds: F32, heights: F32) -> None:
    """Compute an upper bound of the scores in each block, and the highest of each group."""
    n_blocks = len(weights.block_starts) - 1
    next_entry = weights.list_starts[query.grams]
    for tile in range(0, n_blocks, _TILE):
        end = min(tile + _TILE, n_blocks)
        own = bounds[tile:end]
        own[:] = ROUNDING
        for j, gram in enumerate(query.grams):
            step = np.float32(query.components[j] * weights.largest[gram] / MAX_IMPACT)
            row = weights.table_rows[gram]
            if row >= 0:
                impacts = weights.table[row][tile:end]
                for block in range(end - tile):
                    own[block] += step * np.float32(impacts[block])
                continue
            at, last = next_entry[j], weights.list_starts[gram + 1]
            while at < last and weights.list_blocks[at] < end:
                bounds[weights.list_blocks[at]] += step * np.float32(weights.list_impacts[at])
                at += 1
            next_entry[j] = at
        for first in range(tile, end, _GROUP):
            height = np.float32(0)
            for block in range(first, min(first + _GROUP, end)):
                height = max(height, bounds[block])
            heights[first // _GROUP] = height


@njit()
def _sort_groups(heights: F32) -> I64:
    """Return the groups by the level of their highest bound, the highest first."""
    starts = np.zeros(_LEVELS + 1, np.int64)
    for height in heights:
        starts[_LEVELS - _level(height)] += 1
    for level in range(_LEVELS):
        starts[level + 1] += starts[level]
    order = np.empty(len(heights), np.int64)
    for group in range(len(heights) - 1, -1, -1):
        level = _LEVELS - _level(heights[group])
        starts[level] -= 1
        order[starts[level]] = group
    return order


@njit(inline="always")
def _level(bound: float) -> int:
    """Round a bound, which may exceed 1, down to a level from 0 on."""
    return int(np.float32(bound) * np.float32(_LEVELS)) if bound < 1 else _LEVELS


@njit()
def _search_block(block: int, query: F32, weights: Weights, best: _Best, n: int) -> int:
    """Score the texts of a block; return how many of the best there are."""
    k = len(best.texts)
    for text in range(weights.block_starts[block], weights.block_starts[block + 1]):
        score = _score(text, query, weights)
        if score > 0 and (n < k or score >= best.scores[k - 1]):
            n = _insert(text, score, best, n, weights.ranks)
    return n


@njit()
def _search_query(query: _Query, weights: Weights, bounds: F32, heights: F32, best: _Best) -> None:
    """Search the blocks in order of their bounds, until no other can improve the top k."""
    _bound_blocks(query, weights, bounds, heights)
    n, k = 0, len(best.texts)
    order = _sort_groups(heights)
    n_first = min(max(_FIRST_GROUPS, k // _BLOCKS_FOR), len(order))
    height = heights[order[n_first - 1]] if n_first else np.float32(0)
    for group in order[:n_first]:
        for block in range(group * _GROUP, min((group + 1) * _GROUP, len(bounds))):
            if bounds[block] >= height:
                n = _search_block(block, query.weights, weights, best, n)
                bounds[block] = -1  # it is not searched again
    minimum, lowest = best.scores[k - 1], np.float32(ROUNDING)  # of blocks without its n-grams
    for group in order:
        if heights[group] < minimum:
            if _level(heights[group]) < _level(minimum):
                break
            continue
        for block in range(group * _GROUP, min((group + 1) * _GROUP, len(bounds))):
            if bounds[block] > lowest and bounds[block] >= minimum:
                n = _search_block(block, query.weights, weights, best, n)
                minimum = best.scores[k - 1]


@njit(work=_work, plain=search_few)
def search_texts(
    queries: TextCodes, vocabulary: NgramVocabulary, weights: Weights, unknown: float, k: int
) -> tuple[I64, F32]:
    """Find the k nearest texts of each query; padded with -1 and -inf."""
    n_queries, n_blocks = len(queries.starts) - 1, len(weights.block_starts) - 1
    texts = np.full((n_queries, k), -1, np.int64)
    scores = np.full((n_queries, k), -np.inf, np.float32)
    bounds = np.empty(n_blocks, np.float32)
    heights = np.empty(-(-n_blocks // _GROUP), np.float32)
    added = np.zeros(len(weights.rarity), np.float32)
    for q in range(n_queries):
        query = _weigh_query(queries, q, vocabulary, weights.rarity, unknown, added)
        _search_query(query, weights, bounds, heights, _Best(texts[q], scores[q]))
        added[query.grams] = 0
    return texts, scores


@njit(work=_work, plain=score_few)
def score_texts(
    queries: TextCodes, vocabulary: NgramVocabulary, weights: Weights, unknown: float, texts: I64
) -> F32:
    """Compute the cosine of each query with the given texts; 0 where a text is -1."""
    scores = np.zeros(texts.shape, np.float32)
    added = np.zeros(len(weights.rarity), np.float32)
    for q in range(len(queries.starts) - 1):
        query = _weigh_query(queries, q, vocabulary, weights.rarity, unknown, added)
        for i in range(texts.shape[1]):
            if texts[q, i] >= 0:
                scores[q, i] = _score(texts[q, i], added, weights)
        added[query.grams] = 0
    return scores
