"""Exact top-k search by TF-IDF cosine over n-grams, with pruning (as in MaxScore and WAND).

Texts are sorted by norm and divided into blocks, and the score of all texts of a block is bounded
at once. By Cauchy and Schwarz, a score is at most the norm of the part of the query's vector that
the text's n-grams make up. If no n-gram occurs twice in the text, each adds its squared weight
divided by both norms, which bounds the score of a text much longer than the query; the total
weight of a much shorter text is small itself. N-grams that occur r times in a text multiply the
second bound by r, so that such texts have blocks of their own.

Blocks are searched in order of their bounds. In a block, the lists of the query's n-grams are
read from the rarest on. As soon as the k-th best score exceeds what the remaining n-grams can
contribute, no new text can enter: the long lists of common n-grams are not read, and the texts
that may still win are scored from their own n-grams.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from biograft.linking.lexical.ngrams import (
    F32,
    I64,
    U32,
    NgramVocabulary,
    TextCodes,
    Weights,
    find_slot,
    grams_of,
)

_PROBE = 0.5
"""The k-th best score is updated whenever the remaining bound has shrunk by this factor."""
_COST = 200
"""Cost of scoring one text in full, in entries of lists read."""
_SLACK = 1e-5
"""Tolerance for rounding errors of scores."""


@numba.njit(nogil=True)
def _weigh_query(
    queries: TextCodes, q: int, vocabulary: NgramVocabulary, rarity: F32, unknown: float, added: F32
) -> tuple[U32, F32]:
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
            square += (times * unknown) ** 2
        else:
            grams[m] = vocabulary.numbers[slot]
            weights[m] = times * rarity[grams[m]]
            square += weights[m] ** 2
            m += 1
        k += times
    if square > 0:
        weights[:m] /= np.sqrt(square)
    for k in range(m):
        added[grams[k]] = weights[k] * rarity[grams[k]]
    return grams[:m], weights[:m]


@numba.njit(nogil=True)
def _score(text: int, query: F32, weights: Weights) -> float:
    """Compute the cosine of one text, always summing in the same order."""
    total = np.float32(0)
    for i in range(weights.gram_ends[text], weights.gram_ends[text + 1]):
        total += query[weights.grams[i]]
    cosine: float = total * weights.inverse_norm[text]
    return cosine


@numba.njit(nogil=True)
def _insert(text: int, score: float, texts: I64, scores: F32, n: int, ranks: U32) -> int:
    """Insert a text into the sorted top k: higher scores first, ties by the lower rank."""
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


@numba.njit(nogil=True)
def _kth_best(
    base: int, partial: F32, touched: U32, n: int, k: int, query: F32, weights: Weights
) -> float:
    """Score in full the k texts with the best partial scores; return the lowest of the scores."""
    texts, values = np.empty(k, np.int64), np.empty(k, np.float32)
    n_best, minimum = 0, np.float32(-1)
    for i in range(n):
        text = base + touched[i]
        value = partial[touched[i]] * weights.inverse_norm[text]
        if value > minimum:
            n_best = _insert(text, value, texts, values, n_best, weights.ranks)
            if n_best == k:
                minimum = values[k - 1]
    worst = 2.0
    for i in range(k):
        worst = min(worst, _score(texts[i], query, weights))
    return worst


@numba.njit(nogil=True)
def _add_list(
    start: int, end: int, base: int, step: float, postings: U32, partial: F32, touched: U32, n: int
) -> int:
    """Add the contribution of an n-gram to all its texts, and record those that are new."""
    for i in range(start, end):
        text = np.uint64(postings[i]) - np.uint64(base)  # unsigned: no index from the end
        touched[n] = text
        n += partial[text] == 0
        partial[text] += step
    return n


@numba.njit(nogil=True)
def _raise_list(start: int, end: int, base: int, step: float, postings: U32, partial: F32) -> None:
    """Add the contribution of an n-gram to those of its texts that have a partial score."""
    for i in range(start, end):
        text = np.uint64(postings[i]) - np.uint64(base)
        partial[text] += step * np.float32(partial[text] != 0)  # cheaper than a branch


@numba.njit(nogil=True)
def _survivors(
    base: int,
    partial: F32,
    touched: U32,
    n: int,
    threshold: float,
    length: float,
    potential: float,
    inverse_norm: F32,
) -> int:
    """Keep the texts that can still reach the threshold; reset the others.

    The rest of the query has the norm ``length``; it adds at most ``potential`` divided by the
    norm of a text.
    """
    n_left = 0
    for i in range(n):
        text = touched[i]
        inverse = inverse_norm[base + text]
        may_win = partial[text] * inverse + min(length, potential * inverse) + _SLACK >= threshold
        touched[n_left] = text
        n_left += may_win
        partial[text] *= np.float32(may_win)
    return n_left


class _Query(NamedTuple):
    """The n-grams of a query, the rarest first."""

    grams: U32
    components: F32  # of the query's normalised vector
    weights: F32  # (n-grams of all texts,): contribution of an occurrence, times the text's norm


@numba.njit(nogil=True)
def _collect(
    block: int,
    minimum: float,
    query: _Query,
    k: int,
    partial: F32,
    touched: U32,
    weights: Weights,
) -> int:
    """Read the lists of the query's n-grams in a block, rarest first; count texts that may win."""
    base, starts, postings = weights.block_starts[block], weights.posting_starts, weights.postings
    n, probed, threshold, read = 0, 2.0, minimum, 1 << 62
    square, potential, volume = 0.0, 0.0, 0
    for j, gram in enumerate(query.grams):
        length = starts[gram, block + 1] - starts[gram, block]
        if length:
            square += np.float64(query.components[j]) ** 2
            potential += query.weights[gram]
            volume += length
    potential *= weights.repeats[block]
    for j, gram in enumerate(query.grams):
        start, end = starts[gram, block], starts[gram, block + 1]
        if start == end:
            continue
        length = np.sqrt(max(square, 0.0))
        bound = min(length, potential / weights.shortest[block]) + _SLACK
        if minimum < 0 and n >= k and bound < _PROBE * probed and volume > n + _COST * k:
            probed = bound
            kth = _kth_best(base, partial, touched, n, k, query.weights, weights)
            threshold = max(threshold, kth)
        step = query.weights[gram]
        if bound < threshold:
            if read >= n:
                read = 0
                n = _survivors(
                    base, partial, touched, n, threshold, length, potential, weights.inverse_norm
                )
            if n * _COST < volume:
                return n
            read += end - start
            _raise_list(start, end, base, step, postings, partial)
        else:
            n = _add_list(start, end, base, step, postings, partial, touched, n)
        square -= np.float64(query.components[j]) ** 2
        potential -= step * weights.repeats[block]
        volume -= end - start
    if minimum < 0 and n > k:
        kth = _kth_best(base, partial, touched, n, k, query.weights, weights)
        threshold = max(threshold, kth)
    return _survivors(base, partial, touched, n, threshold, 0.0, 0.0, weights.inverse_norm)


@numba.njit(nogil=True)
def _search_query(
    query: _Query, partial: F32, touched: U32, weights: Weights, texts: I64, scores: F32
) -> None:
    """Search the blocks in order of their bounds, until no other can improve the top k."""
    square, potential, of_length = 0.0, 0.0, 0.0
    for j, gram in enumerate(query.grams):
        square += np.float64(query.components[j]) ** 2
        potential += query.weights[gram]
        of_length = max(of_length, query.components[j] / weights.rarity[gram])
    bounds = np.minimum(potential * weights.repeats / weights.shortest, of_length * weights.longest)
    n_best, minimum = 0, -1.0
    for block in np.argsort(-bounds, kind="mergesort"):
        if min(bounds[block], np.sqrt(square)) + _SLACK < minimum:
            continue
        n = _collect(block, minimum, query, len(texts), partial, touched, weights)
        for i in range(n):
            text = weights.block_starts[block] + touched[i]
            partial[touched[i]] = 0
            score = _score(text, query.weights, weights)
            if score >= minimum:
                n_best = _insert(text, score, texts, scores, n_best, weights.ranks)
                if n_best == len(texts):
                    minimum = scores[n_best - 1]


@numba.njit(nogil=True, cache=True)
def search_texts(
    queries: TextCodes, vocabulary: NgramVocabulary, weights: Weights, unknown: float, k: int
) -> tuple[I64, F32]:
    """Find the k nearest texts of each query; padded with -1 and -inf."""
    n_queries = len(queries.starts) - 1
    texts = np.full((n_queries, k), -1, np.int64)
    scores = np.full((n_queries, k), -np.inf, np.float32)
    widest = np.max(np.diff(weights.block_starts)) if len(weights.shortest) else 0
    partial = np.zeros(widest, np.float32)
    touched = np.empty(widest + 1, np.uint32)
    added = np.zeros(len(weights.rarity), np.float32)
    for q in range(n_queries):
        grams, components = _weigh_query(queries, q, vocabulary, weights.rarity, unknown, added)
        lengths = weights.posting_starts[grams, -1] - weights.posting_starts[grams, 0]
        order = np.argsort(lengths)
        query = _Query(grams[order], components[order], added)
        _search_query(query, partial, touched, weights, texts[q], scores[q])
        added[grams] = 0
    return texts, scores


@numba.njit(nogil=True, cache=True)
def score_texts(
    queries: TextCodes, vocabulary: NgramVocabulary, weights: Weights, unknown: float, texts: I64
) -> F32:
    """Compute the cosine of each query with the given texts; 0 where a text is -1."""
    scores = np.zeros(texts.shape, np.float32)
    added = np.zeros(len(weights.rarity), np.float32)
    for q in range(len(queries.starts) - 1):
        grams, _ = _weigh_query(queries, q, vocabulary, weights.rarity, unknown, added)
        for i in range(texts.shape[1]):
            if texts[q, i] >= 0:
                scores[q, i] = _score(texts[q, i], added, weights)
        added[grams] = 0
    return scores
