"""The k nearest texts by the cosine of their n-gram weights, exactly, without scoring all.

The n-grams of a query are taken from the rarest on. What the rest can still add to a text that
none of the rare ones found is at most the length of the rest of the query's vector (texts have
length one: Cauchy and Schwarz). As soon as the k-th best text found beats that, no new text can
enter, and the long lists of common n-grams are never read; the texts found that may still win
are scored in full from their own n-grams.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from biograft.linking.lexical.ngrams import I64, U32, U64, Texts, Vocabulary, find_slot, grams_of

F32 = npt.NDArray[np.float32]

_PROBE = 0.5
"""The k-th best is looked for whenever what is left has shrunk by this factor."""
_COST = 50
"""Scoring one text in full costs about as much as reading so many entries of lists."""
_SLACK = 1e-5
"""What rounding may hide of a score."""


class Weights(NamedTuple):
    """The n-grams of all texts from both sides, and how much each counts."""

    postings: U32  # texts of each n-gram, repeated as often as it occurs in them
    posting_starts: I64  # (n-grams + 1,)
    grams: U32  # n-grams of each text, ascending, repeated as they occur
    gram_ends: I64  # (texts + 1,)
    rarity: F32  # (n-grams,)
    inverse_norm: F32  # (texts,)


@numba.njit(nogil=True, cache=True)
def weigh(grams: U32, ends: I64, rarity: F32) -> F32:
    """Compute one over the length of every text's vector."""
    out = np.zeros(len(ends) - 1, np.float32)
    for text in range(len(ends) - 1):
        total, run = 0.0, 0
        for place in range(ends[text], ends[text + 1]):
            run += 1
            if place + 1 == ends[text + 1] or grams[place + 1] != grams[place]:
                total += (run * rarity[grams[place]]) ** 2
                run = 0
        out[text] = 1 / np.sqrt(total) if total > 0 else 0.0
    return out


@numba.njit(nogil=True)
def _read_query(
    codes: U32, start: int, end: int, keys: U64, numbers: U32, rarity: F32, unknown: float
) -> tuple[U32, F32]:
    """Give a query's known n-grams with their weights, the query's length being one."""
    found = np.empty(3 * (end - start) + 3, np.uint64)
    n = grams_of(codes, start, end, found)
    found[:n].sort()
    grams, weights = np.empty(n, np.uint32), np.empty(n, np.float32)
    m, square, k = 0, 0.0, 0
    while k < n:
        times = 1
        while k + times < n and found[k + times] == found[k]:
            times += 1
        slot = find_slot(keys, found[k])
        if keys[slot] == 0:
            square += (times * unknown) ** 2
        else:
            grams[m] = numbers[slot]
            weights[m] = times * rarity[grams[m]]
            square += weights[m] ** 2
            m += 1
        k += times
    if square > 0:
        weights[:m] /= np.sqrt(square)
    return grams[:m], weights[:m]


@numba.njit(nogil=True)
def _score(text: int, query: F32, weights: Weights) -> float:
    """Compute the whole cosine of one text, always in the same order."""
    total = np.float32(0)
    for place in range(weights.gram_ends[text], weights.gram_ends[text + 1]):
        total += query[weights.grams[place]]
    cosine: float = total * weights.inverse_norm[text]
    return cosine


@numba.njit(nogil=True)
def _insert(text: int, score: float, texts: I64, scores: F32, n: int) -> int:
    """Keep the best so far in order: higher score first, then the lower text."""
    k = len(texts)
    if n == k and (score < scores[k - 1] or (score == scores[k - 1] and text > texts[k - 1])):
        return n
    place = min(n, k - 1)
    while place > 0 and (
        scores[place - 1] < score or (scores[place - 1] == score and texts[place - 1] > text)
    ):
        texts[place], scores[place] = texts[place - 1], scores[place - 1]
        place -= 1
    texts[place], scores[place] = text, score
    return min(n + 1, k)


@numba.njit(nogil=True)
def _kth_best(partial: F32, touched: U32, n: int, k: int, query: F32, weights: Weights) -> float:
    """Score in full the k texts that look best so far, and give the worst of them."""
    texts, values = np.empty(k, np.int64), np.empty(k, np.float32)
    kept, least = 0, np.float32(-1)
    for i in range(n):
        text = touched[i]
        value = partial[text] * weights.inverse_norm[text]
        if value > least:
            kept = _insert(text, value, texts, values, kept)
            if kept == k:
                least = values[k - 1]
    worst = 2.0
    for i in range(k):
        worst = min(worst, _score(texts[i], query, weights))
    return worst


@numba.njit(nogil=True)
def _add_list(
    start: int, end: int, step: float, postings: U32, partial: F32, touched: U32, n: int
) -> int:
    """Add one n-gram's share to all its texts, and note those met for the first time."""
    for place in range(start, end):
        text = postings[place]
        touched[n] = text
        n += partial[text] == 0
        partial[text] += step
    return n


@numba.njit(nogil=True)
def _raise_list(start: int, end: int, step: float, postings: U32, partial: F32) -> None:
    """Add one n-gram's share to those of its texts that were met before."""
    for place in range(start, end):
        text = postings[place]
        if partial[text] != 0:
            partial[text] += step


@numba.njit(nogil=True)
def _survivors(partial: F32, touched: U32, n: int, least: float, inverse_norm: F32) -> int:
    """Keep the texts that can still reach ``least``; forget the others."""
    kept = 0
    for i in range(n):
        text = touched[i]
        if partial[text] * inverse_norm[text] >= least:
            touched[kept] = text
            kept += 1
        else:
            partial[text] = 0
    return kept


@numba.njit(nogil=True)
def _gather(
    order: I64,
    grams: U32,
    shares: F32,
    k: int,
    partial: F32,
    touched: U32,
    query: F32,
    weights: Weights,
) -> int:
    """Read the lists of the query's n-grams, rarest first; give how many texts may win."""
    n, least, probed = 0, -1.0, 2.0
    rest, volume = 0.0, 0
    for j in order:
        rest += np.float64(shares[j]) ** 2
        volume += weights.posting_starts[grams[j] + 1] - weights.posting_starts[grams[j]]
    for j in order:
        gram = grams[j]
        start, end = weights.posting_starts[gram], weights.posting_starts[gram + 1]
        bound = np.sqrt(max(rest, 0.0)) + _SLACK
        if n >= k and bound < _PROBE * probed and volume > n + _COST * k:
            probed = bound
            least = _kth_best(partial, touched, n, k, query, weights)
        if bound < least:
            n = _survivors(partial, touched, n, least - bound, weights.inverse_norm)
            if n * _COST < volume:
                return n
            _raise_list(start, end, query[gram], weights.postings, partial)
        else:
            n = _add_list(
                start,
                end,
                query[gram],
                weights.postings,
                partial,
                touched,
                n,
            )
        rest -= np.float64(shares[j]) ** 2
        volume -= end - start
    if n > k:
        least = max(least, _kth_best(partial, touched, n, k, query, weights))
        n = _survivors(partial, touched, n, least - _SLACK, weights.inverse_norm)
    return n


@numba.njit(nogil=True)
def _search_one(
    grams: U32,
    shares: F32,
    partial: F32,
    touched: U32,
    query: F32,
    weights: Weights,
    texts: I64,
    scores: F32,
) -> None:
    lengths = np.empty(len(grams), np.int64)
    for j in range(len(grams)):
        query[grams[j]] = shares[j] * weights.rarity[grams[j]]
        lengths[j] = weights.posting_starts[grams[j] + 1] - weights.posting_starts[grams[j]]
    order = np.argsort(lengths)
    n = _gather(order, grams, shares, len(texts), partial, touched, query, weights)
    kept, least = 0, np.float32(-1)
    for i in range(n):
        text = touched[i]
        partial[text] = 0
        score = _score(text, query, weights)
        if score >= least:
            kept = _insert(text, score, texts, scores, kept)
            if kept == len(texts):
                least = scores[kept - 1]
    for gram in grams:
        query[gram] = 0


@numba.njit(nogil=True, cache=True)
def search_texts(
    queries: Texts, vocabulary: Vocabulary, weights: Weights, unknown: float, k: int
) -> tuple[I64, F32]:
    """Find the k nearest texts of each query; -1 and -inf where fewer share an n-gram."""
    n_queries, n_texts = len(queries.starts) - 1, len(weights.inverse_norm)
    texts = np.full((n_queries, k), -1, np.int64)
    scores = np.full((n_queries, k), -np.inf, np.float32)
    partial = np.zeros(n_texts, np.float32)
    touched = np.empty(n_texts + 1, np.uint32)
    query = np.zeros(len(weights.rarity), np.float32)
    for q in range(n_queries):
        grams, shares = _read_query(
            queries.codes,
            queries.starts[q],
            queries.starts[q + 1],
            vocabulary.keys,
            vocabulary.numbers,
            weights.rarity,
            unknown,
        )
        if len(grams):
            _search_one(grams, shares, partial, touched, query, weights, texts[q], scores[q])
    return texts, scores


@numba.njit(nogil=True, cache=True)
def score_texts(
    queries: Texts, vocabulary: Vocabulary, weights: Weights, unknown: float, texts: I64
) -> F32:
    """Compute the cosine of each query with texts of its own choice; 0 where a text is -1."""
    scores = np.zeros(texts.shape, np.float32)
    query = np.zeros(len(weights.rarity), np.float32)
    for q in range(len(queries.starts) - 1):
        grams, shares = _read_query(
            queries.codes,
            queries.starts[q],
            queries.starts[q + 1],
            vocabulary.keys,
            vocabulary.numbers,
            weights.rarity,
            unknown,
        )
        for j in range(len(grams)):
            query[grams[j]] = shares[j] * weights.rarity[grams[j]]
        for i in range(texts.shape[1]):
            if texts[q, i] >= 0:
                scores[q, i] = _score(texts[q, i], query, weights)
        for gram in grams:
            query[gram] = 0
    return scores
