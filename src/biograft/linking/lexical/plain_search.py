"""The search of a few texts without compiled loops: the same names and scores, by numpy alone.

To load the compiled loops takes longer than to search a sentence this way. What is stored is read
as in :mod:`biograft.linking.lexical.search`, and checked as it is read.
"""

from __future__ import annotations

import numpy as np

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

_FIRST_BLOCKS, _MORE = 64, 4
"""Blocks that are scored first, and how many times more in each round after it."""
_TEXTS = 4096
"""Texts scored at once, to bound memory."""


def search_few(
    queries: TextCodes, vocabulary: NgramVocabulary, weights: Weights, unknown: float, k: int
) -> tuple[I64, F32]:
    """Find the k nearest texts of each query; padded with -1 and -inf."""
    n_queries = len(queries.starts) - 1
    texts = np.full((n_queries, k), -1, np.int64)
    scores = np.full((n_queries, k), -np.inf, np.float32)
    for q in range(n_queries):
        grams, components = _weigh_query(queries, q, vocabulary, weights.rarity, unknown)
        found, cosines = _search(grams, components, weights, k)
        texts[q, : len(found)], scores[q, : len(found)] = found, cosines
    return texts, scores


def score_few(
    queries: TextCodes, vocabulary: NgramVocabulary, weights: Weights, unknown: float, texts: I64
) -> F32:
    """Compute the cosine of each query with the given texts; 0 where a text is -1."""
    scores = np.zeros(texts.shape, np.float32)
    for q in range(len(queries.starts) - 1):
        grams, components = _weigh_query(queries, q, vocabulary, weights.rarity, unknown)
        known = texts[q] >= 0
        added = _added(grams, components, weights)
        scores[q, known] = _score(texts[q][known], added, weights)
    return scores


def _weigh_query(
    queries: TextCodes, q: int, vocabulary: NgramVocabulary, rarity: F32, unknown: float
) -> tuple[U32, F32]:
    """Return the known n-grams of a query, and their components of its normalised vector."""
    start, end = queries.starts[q], queries.starts[q + 1]
    keys = np.empty(3 * (end - start) + 3, np.uint64)
    found, counts = np.unique(keys[: grams_of(queries.codes, start, end, keys)], return_counts=True)
    grams, components, square = [], [], 0.0
    for key, times in zip(found, counts.tolist(), strict=True):
        slot = find_slot(vocabulary.keys, key)
        if vocabulary.keys[slot] == 0:
            square += (times * unknown) * (times * unknown)
        else:
            gram = vocabulary.numbers[slot]
            component = np.float32(times * float(rarity[gram]))
            square += float(component) * float(component)
            grams.append(gram)
            components.append(component)
    vector = np.array(components, np.float32)
    if square > 0:
        vector = (vector.astype(np.float64) / np.sqrt(square)).astype(np.float32)
    return np.array(grams, np.uint32), vector


def _added(grams: U32, components: F32, weights: Weights) -> F32:
    """Return what an occurrence of each n-gram adds to a score, times the norm of its text."""
    added = np.zeros(len(weights.rarity), np.float32)
    added[grams] = components * weights.rarity[grams]
    return added


def _bound_blocks(grams: U32, components: F32, weights: Weights) -> F32:
    """Compute an upper bound of the scores in each block."""
    n_blocks = len(weights.block_starts) - 1
    bounds = np.full(n_blocks, ROUNDING, np.float32)
    for gram, component in zip(grams.tolist(), components, strict=True):
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


def _search(grams: U32, components: F32, weights: Weights, k: int) -> tuple[I64, F32]:
    """Score the blocks with the highest bounds, and more until no other can hold one of the best.

    The best have higher scores, or of equal ones the lower rank.
    """
    bounds, added = _bound_blocks(grams, components, weights), _added(grams, components, weights)
    texts, scores = np.zeros(0, np.int64), np.zeros(0, np.float32)
    n_scored = _FIRST_BLOCKS
    left = np.flatnonzero(bounds > np.float32(ROUNDING))
    while len(left):
        if len(left) > n_scored:
            left = left[np.argpartition(-bounds[left], n_scored)[:n_scored]]
        more = _texts_of(left, weights)
        texts = np.concatenate([texts, more])
        scores = np.concatenate([scores, _score(more, added, weights)])
        order = np.lexsort((weights.ranks[texts], -scores))[:k]
        order = order[scores[order] > 0]
        texts, scores = texts[order], scores[order]
        bounds[left] = -1  # they are not scored again
        minimum = scores[-1] if len(scores) == k else np.float32(0)
        left = np.flatnonzero((bounds > np.float32(ROUNDING)) & (bounds >= minimum))
        n_scored *= _MORE
    return texts, scores


def _texts_of(blocks: I64, weights: Weights) -> I64:
    """Return the texts of some blocks."""
    first = weights.block_starts[blocks]
    n = weights.block_starts[blocks + 1] - first
    return np.repeat(first - np.cumsum(n) + n, n) + np.arange(n.sum())


def _score(texts: I64, added: F32, weights: Weights) -> F32:
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
