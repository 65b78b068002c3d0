"""Exact top-k search by TF-IDF cosine over n-grams, with bounds for blocks of texts.

Texts with the same rare n-grams lie beside each other, in small blocks. For each block the index
holds the largest impact of every n-gram on one of its texts (block-max, as in Ding and Suel, 2011,
and in BMP of Mallia et al., 2024). The sum of these impacts, weighted by the query, is an upper
bound of all scores in the block. A query first bounds all blocks. Then it scores the texts of the
blocks with the highest bounds, from their own n-grams, until no other block can hold one of the
best k. All texts of a block are scored in the same order of additions as in a full comparison, so
that the results are the same, ties included.

A few texts are searched without compiled loops: the same names and scores, by numpy alone. To load
the compiled loops takes longer than to search a sentence this way.

Loops compiled by numba check no index. What is read of the large arrays is checked here as it is
read, so that an index is opened without reading all of it; damage is a ``ValueError``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from biograft.arrays import Bytes, Float32s, Ints, Uints
from biograft.compute import njit
from biograft.linking.lexical.ngrams import (
    MAX_IMPACT,
    ROUNDING,
    U16,
    NgramVocabulary,
    TextCodes,
    Weights,
    find_slot,
    grams_of,
    sort_few,
)

_FIRST_BLOCKS, _MORE = 64, 4
"""Blocks that are scored first, and how many times more in each round after it."""
_TEXTS = 4096
"""Texts scored at once, to bound memory."""
_GROUP = 64
"""Blocks of a group; groups are visited by their highest bound."""
_LEVELS = 256
"""Groups are sorted by their highest bound, rounded down to one of these levels."""
_MAX_BOUND = (1 << 16) - 2
"""Bounds are whole numbers of 16 bits, of which vector instructions add twice as many as of 32."""
_FIRST_GROUPS, _BLOCKS_FOR = 8, 2
"""Groups whose best blocks are scored first, for an early minimum of the best k scores: at least so
many, and one for so many of the k."""


class _Query(NamedTuple):
    """The n-grams of a query."""

    grams: Uints
    components: Float32s  # of the query's normalised vector
    weights: (
        Float32s  # (n-grams of all texts,): contribution of an occurrence, times the text's norm
    )


class _Units(NamedTuple):
    """Scale of the bounds of a query."""

    scale: float
    """Units in a score of 1."""
    n_rows: int
    """Rows of the table in a bound, each rounded down by less than a unit."""
    lowest: int
    """The lowest bound of a block that may have one of the query's n-grams."""


class _Best(NamedTuple):
    """The best texts so far: higher scores first, ties by the lower rank."""

    texts: Ints
    scores: Float32s


def _bound_few(query: _Query, weights: Weights) -> Float32s:
    """Compute an upper bound of the scores in each block."""
    n_blocks = len(weights.block_starts) - 1
    bounds = np.full(n_blocks, ROUNDING, np.float32)
    for gram, component in zip(query.grams.tolist(), query.components, strict=True):
        step = component * weights.largest[gram] / np.float32(MAX_IMPACT)
        row = weights.table_rows[gram]
        if row >= 0:
            bounds += step * weights.table[row].astype(np.float32)
            continue
        of_gram = slice(weights.list_starts[gram], weights.list_starts[gram + 1])
        blocks = weights.list_blocks[of_gram]
        if len(blocks) and blocks.max() >= n_blocks:
            raise ValueError("list_blocks: numbers out of range")
        bounds[blocks] += step * weights.list_impacts[of_gram].astype(np.float32)
    return bounds


def _search_plain(query: _Query, weights: Weights, _: U16, __: U16, best: _Best) -> None:
    """Score the blocks with the highest bounds, and more until no other can hold one of the best.

    The best have higher scores, or of equal ones the lower rank.
    """
    bounds, k = _bound_few(query, weights), len(best.texts)
    texts, scores = np.zeros(0, np.int64), np.zeros(0, np.float32)
    n_scored = _FIRST_BLOCKS
    left = np.flatnonzero(bounds > np.float32(ROUNDING))
    while len(left):
        if len(left) > n_scored:
            left = left[np.argpartition(-bounds[left], n_scored)[:n_scored]]
        first = weights.block_starts[left]
        n = weights.block_starts[left + 1] - first
        more = np.repeat(first - np.cumsum(n) + n, n) + np.arange(n.sum())
        texts = np.concatenate([texts, more])
        scores = np.concatenate([scores, _score_some(more, query.weights, weights)])
        order = np.lexsort((weights.ranks[texts], -scores))[:k]
        order = order[scores[order] > 0]
        texts, scores = texts[order], scores[order]
        bounds[left] = -1  # they are not scored again
        minimum = scores[-1] if len(scores) == k else np.float32(0)
        left = np.flatnonzero((bounds > np.float32(ROUNDING)) & (bounds >= minimum))
        n_scored *= _MORE
    best.texts[: len(texts)], best.scores[: len(texts)] = texts, scores


def _score_some(texts: Ints, added: Float32s, weights: Weights) -> Float32s:
    """Compute the cosine of some texts, always summing in the order of their n-grams."""
    scores = np.zeros(len(texts), np.float32)
    for begin in range(0, len(texts), _TEXTS):
        own = texts[begin : begin + _TEXTS]
        start, end = weights.gram_ends[own], weights.gram_ends[own + 1]
        if not bool(((start >= 0) & (start <= end) & (end <= len(weights.grams))).all()):
            raise ValueError("gram_ends: positions out of range")
        total = np.zeros(len(own), np.float32)
        for column in range(int((end - start).max(initial=0))):
            at = start + column
            inside = at < end
            grams = weights.grams[np.where(inside, at, 0)]
            if len(grams) and grams[inside].max(initial=0) >= len(added):
                raise ValueError("grams: numbers out of range")
            total += np.where(inside, added[np.where(inside, grams, 0)], np.float32(0))
        cosines = total * weights.inverse_norm[own]
        if not bool(((cosines >= 0) & (cosines <= 1 + ROUNDING)).all()):
            raise ValueError("inverse_norm: numbers out of range")
        scores[begin : begin + len(own)] = cosines
    return scores


def _work(queries: TextCodes, _: NgramVocabulary, weights: Weights, *__: object) -> int:
    """Estimate the steps of a search by numpy: they depend on the blocks that are bounded."""
    return (len(queries.starts) - 1) * (2400 + len(weights.block_starts) // 40)


@njit()
def _weigh_query(
    queries: TextCodes,
    q: int,
    vocabulary: NgramVocabulary,
    rarity: Float32s,
    unknown: float,
    added: Float32s,
) -> _Query:
    """Return the known n-grams of a query and their weights, normalised to a norm of 1.

    The contribution of each occurrence in a text is written to ``added``, which is zero before.
    """
    start, end = queries.starts[q], queries.starts[q + 1]
    keys = np.empty(3 * (end - start) + 3, np.uint64)
    n = grams_of(queries.codes, start, end, keys)
    sort_few(keys, 0, n)
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
        for k in range(m):
            weights[k] /= np.sqrt(square)
    for k in range(m):
        added[grams[k]] = weights[k] * rarity[grams[k]]
    return _Query(grams[:m], weights[:m], added)


@njit()
def _score(text: int, query: Float32s, weights: Weights) -> float:
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
def _insert(text: int, score: float, best: _Best, n: int, ranks: Uints) -> int:
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
def _bound_blocks(query: _Query, weights: Weights, bounds: U16) -> _Units:
    """Compute an upper bound of the scores in each block, in units, plus 1."""
    bounds[:] = 1
    grams, n = query.grams, len(query.grams)
    highest = 0.0
    for j in range(n):
        highest += np.float64(query.components[j]) * np.float64(weights.largest[grams[j]])
    if highest == 0:
        return _Units(0.0, 0, 2)
    # what is rounded up adds at most 2 for each n-gram: the sum stays below 2 ** 16
    scale = (_MAX_BOUND - 2 * n) * MAX_IMPACT / (MAX_IMPACT + 1) / highest
    rows, steps = np.empty(n + 3, np.int64), np.zeros(n + 3, np.uint32)
    n_rows = 0
    for j in range(n):
        gram = grams[j]
        share = np.float64(query.components[j]) * np.float64(weights.largest[gram]) * scale
        step = np.uint32(np.ceil(share * (MAX_IMPACT + 1) / MAX_IMPACT))
        if weights.table_rows[gram] >= 0:
            rows[n_rows], steps[n_rows] = weights.table_rows[gram], step
            n_rows += 1
        else:
            _add_list(gram, step, weights, bounds)
    rows[n_rows : n_rows + 3] = rows[max(n_rows - 1, 0)]  # four at a time, these with a step of 0
    for j in range(0, n_rows, 4):
        _add_rows(rows[j : j + 4], steps[j : j + 4], weights.table, bounds)
    return _Units(scale, n_rows, 1 if n_rows else 2)


@njit()
def _add_list(gram: int, step: int, weights: Weights, bounds: U16) -> None:
    """Add the impacts of an n-gram on the blocks of its list, rounded up."""
    start, end = weights.list_starts[gram], weights.list_starts[gram + 1]
    blocks, impacts = weights.list_blocks[start:end], weights.list_impacts[start:end]
    n_blocks = np.uint32(len(bounds))
    for i in range(len(blocks)):
        block = blocks[i]
        if block >= n_blocks:
            raise ValueError("list_blocks: numbers out of range")
        bounds[block] += np.uint16((np.uint32(impacts[i]) * step + np.uint32(255)) >> np.uint32(8))


@njit()
def _add_rows(rows: Ints, steps: Uints, table: Bytes, bounds: U16) -> None:
    """Add four rows of impacts, each rounded down; with vector instructions."""
    first, second, third, fourth = table[rows[0]], table[rows[1]], table[rows[2]], table[rows[3]]
    a, b, c, d = steps[0], steps[1], steps[2], steps[3]
    for k in range(len(bounds)):
        own = _times(first[k], a) + _times(second[k], b) + _times(third[k], c)
        bounds[k] += np.uint16(own + _times(fourth[k], d))


@njit(inline="always")
def _times(impact: int, step: int) -> Any:
    """Multiply in 16 bits: the upper half of a product, of which processors have an instruction."""
    upper = np.uint32(np.uint16(impact) << np.uint16(8))
    return np.uint16((upper * step) >> np.uint32(16))


@njit()
def _find_heights(bounds: U16, heights: U16) -> None:
    """Find the highest bound of each group."""
    for group in range(len(heights)):
        own = bounds[group * _GROUP : (group + 1) * _GROUP]
        height = own[0]
        for k in range(len(own)):
            height = own[k] if own[k] > height else height
        heights[group] = height


@njit()
def _sort_groups(heights: U16) -> Ints:
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


@njit()
def _level(bound: int) -> int:
    """Round a bound down to a level from 0 on."""
    return int(bound) >> 8


@njit()
def _search_block(block: int, query: Float32s, weights: Weights, best: _Best, n: int) -> int:
    """Score the texts of a block; return how many of the best there are."""
    k = len(best.texts)
    for text in range(weights.block_starts[block], weights.block_starts[block + 1]):
        score = _score(text, query, weights)
        if score > 0 and (n < k or score >= best.scores[k - 1]):
            n = _insert(text, score, best, n, weights.ranks)
    return n


@njit()
def _least_bound(units: _Units, n: int, best: _Best) -> int:
    """Return the bound that a block has at least if it can improve the top k."""
    k = len(best.texts)
    if n < k:
        return units.lowest
    bound = int((best.scores[k - 1] - ROUNDING) * units.scale) - units.n_rows
    return max(bound, units.lowest)


@njit(plain=_search_plain)
def _search_query(query: _Query, weights: Weights, bounds: U16, heights: U16, best: _Best) -> None:
    """Search the blocks in order of their bounds, until no other can improve the top k."""
    units = _bound_blocks(query, weights, bounds)
    _find_heights(bounds, heights)
    n, k = 0, len(best.texts)
    order = _sort_groups(heights)
    n_first = min(max(_FIRST_GROUPS, k // _BLOCKS_FOR), len(order))
    height = max(np.int64(heights[order[n_first - 1]]) if n_first else 0, units.lowest)
    for group in order[:n_first]:
        for block in range(group * _GROUP, min((group + 1) * _GROUP, len(bounds))):
            if bounds[block] >= height:
                n = _search_block(block, query.weights, weights, best, n)
                bounds[block] = 0  # it is not searched again
    least = _least_bound(units, n, best)
    for group in order:
        if heights[group] < least:
            if _level(heights[group]) < _level(least):
                break
            continue
        for block in range(group * _GROUP, min((group + 1) * _GROUP, len(bounds))):
            if bounds[block] >= least:
                n = _search_block(block, query.weights, weights, best, n)
                least = _least_bound(units, n, best)


@njit(work=_work)
def search_texts(
    queries: TextCodes, vocabulary: NgramVocabulary, weights: Weights, unknown: float, k: int
) -> tuple[Ints, Float32s]:
    """Find the k nearest texts of each query; padded with -1 and -inf.

    Args:
        queries: Code points of the queries.
        vocabulary: N-grams of the index.
        weights: TF-IDF weights of its texts.
        unknown: Weight of an n-gram that no text has.
        k: Number of texts to find.
    """
    n_queries, n_blocks = len(queries.starts) - 1, len(weights.block_starts) - 1
    texts = np.full((n_queries, k), -1, np.int64)
    scores = np.full((n_queries, k), -np.inf, np.float32)
    bounds = np.empty(n_blocks, np.uint16)
    heights = np.empty(-(-n_blocks // _GROUP), np.uint16)
    added = np.zeros(len(weights.rarity), np.float32)
    for q in range(n_queries):
        query = _weigh_query(queries, q, vocabulary, weights.rarity, unknown, added)
        _search_query(query, weights, bounds, heights, _Best(texts[q], scores[q]))
        added[query.grams] = 0
    return texts, scores


def _score_plain(texts: Ints, query: Float32s, weights: Weights, scores: Float32s) -> None:
    known = texts >= 0
    scores[known] = _score_some(texts[known], query, weights)


@njit(plain=_score_plain)
def _score_texts(texts: Ints, query: Float32s, weights: Weights, scores: Float32s) -> None:
    """Compute the cosines of texts; a text that is -1 keeps its score."""
    for i in range(len(texts)):
        if texts[i] >= 0:
            scores[i] = _score(texts[i], query, weights)


@njit(work=_work)
def score_texts(
    queries: TextCodes, vocabulary: NgramVocabulary, weights: Weights, unknown: float, texts: Ints
) -> Float32s:
    """Compute the cosine of each query with the given texts; 0 where a text is -1.

    Args:
        queries: Code points of the queries.
        vocabulary: N-grams of the index.
        weights: TF-IDF weights of its texts.
        unknown: Weight of an n-gram that no text has.
        texts: Numbers of texts for each query: (queries, m).
    """
    scores = np.zeros(texts.shape, np.float32)
    added = np.zeros(len(weights.rarity), np.float32)
    for q in range(len(queries.starts) - 1):
        query = _weigh_query(queries, q, vocabulary, weights.rarity, unknown, added)
        _score_texts(texts[q], added, weights, scores[q])
        added[query.grams] = 0
    return scores
