"""The k nearest texts by the cosine of their n-gram weights, exactly, without scoring all.

Texts stand in order of their length (of their vector's, that is), in blocks. What a text can
score is bounded for all of a block at once. By Cauchy and Schwarz it is at most the length of the
query's vector that its n-grams make up. If no n-gram occurs twice in the text, each adds its
squared weight over both lengths, so that a text much longer than the query scores little; one
much shorter does so because all it has is little. N-grams that occur r times in a text raise the
second bound r times: such texts have blocks of their own.

Blocks are read from the most promising on. In a block the n-grams of a query are taken from the
rarest on. As soon as the k-th best text found beats what the rest can still give to a text that
none of the rare ones found, no new text can enter, and the long lists of common n-grams are never
read; the texts found that may still win are scored in full from their own n-grams.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from biograft.linking.lexical.ngrams import (
    F32,
    I64,
    U32,
    Texts,
    Vocabulary,
    Weights,
    find_slot,
    grams_of,
)

_PROBE = 0.5
"""The k-th best is looked for whenever what is left has shrunk by this factor."""
_COST = 200
"""Scoring one text in full costs about as much as reading so many entries of lists."""
_SLACK = 1e-5
"""What rounding may hide of a score."""


@numba.njit(nogil=True)
def _weigh_query(
    queries: Texts, q: int, vocabulary: Vocabulary, rarity: F32, unknown: float, added: F32
) -> tuple[U32, F32]:
    """Give a query's known n-grams with their weights, the query's length being one.

    What each occurrence in a text adds goes to ``added``, which was zero.
    """
    start, end = queries.starts[q], queries.starts[q + 1]
    found = np.empty(3 * (end - start) + 3, np.uint64)
    n = grams_of(queries.codes, start, end, found)
    found[:n].sort()
    grams, weights = np.empty(n, np.uint32), np.empty(n, np.float32)
    m, square, k = 0, 0.0, 0
    while k < n:
        times = 1
        while k + times < n and found[k + times] == found[k]:
            times += 1
        slot = find_slot(vocabulary.keys, found[k])
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
    """Compute the whole cosine of one text, always in the same order."""
    total = np.float32(0)
    for place in range(weights.gram_ends[text], weights.gram_ends[text + 1]):
        total += query[weights.grams[place]]
    cosine: float = total * weights.inverse_norm[text]
    return cosine


@numba.njit(nogil=True)
def _insert(text: int, score: float, texts: I64, scores: F32, n: int, ranks: U32) -> int:
    """Keep the best so far in order: higher score first, then the lower rank."""
    k = len(texts)
    if n == k and (
        score < scores[k - 1] or (score == scores[k - 1] and ranks[text] > ranks[texts[k - 1]])
    ):
        return n
    place = min(n, k - 1)
    while place > 0 and (
        scores[place - 1] < score
        or (scores[place - 1] == score and ranks[texts[place - 1]] > ranks[text])
    ):
        texts[place], scores[place] = texts[place - 1], scores[place - 1]
        place -= 1
    texts[place], scores[place] = text, score
    return min(n + 1, k)


@numba.njit(nogil=True)
def _kth_best(
    base: int, partial: F32, touched: U32, n: int, k: int, query: F32, weights: Weights
) -> float:
    """Score in full the k texts that look best so far, and give the worst of them."""
    texts, values = np.empty(k, np.int64), np.empty(k, np.float32)
    kept, least = 0, np.float32(-1)
    for i in range(n):
        text = base + touched[i]
        value = partial[touched[i]] * weights.inverse_norm[text]
        if value > least:
            kept = _insert(text, value, texts, values, kept, weights.ranks)
            if kept == k:
                least = values[k - 1]
    worst = 2.0
    for i in range(k):
        worst = min(worst, _score(texts[i], query, weights))
    return worst


@numba.njit(nogil=True)
def _add_list(
    start: int, end: int, base: int, step: float, postings: U32, partial: F32, touched: U32, n: int
) -> int:
    """Add one n-gram's share to all its texts, and note those met for the first time."""
    for place in range(start, end):
        text = np.uint64(postings[place]) - np.uint64(base)  # unsigned: never counted from the end
        touched[n] = text
        n += partial[text] == 0
        partial[text] += step
    return n


@numba.njit(nogil=True)
def _raise_list(start: int, end: int, base: int, step: float, postings: U32, partial: F32) -> None:
    """Add one n-gram's share to those of its texts that were met before."""
    for place in range(start, end):
        text = np.uint64(postings[place]) - np.uint64(base)
        partial[text] += step * np.float32(partial[text] != 0)  # a branch would cost more


@numba.njit(nogil=True)
def _survivors(
    base: int,
    partial: F32,
    touched: U32,
    n: int,
    least: float,
    length: float,
    potential: float,
    inverse_norm: F32,
) -> int:
    """Keep the texts that the rest can still bring to ``least``; forget the others.

    The rest of the query has this length; no text gets more of it than ``potential`` over its own.
    """
    kept = 0
    for i in range(n):
        text = touched[i]
        inverse = inverse_norm[base + text]
        may_win = partial[text] * inverse + min(length, potential * inverse) + _SLACK >= least
        touched[kept] = text
        kept += may_win
        partial[text] *= np.float32(may_win)
    return kept


class _Query(NamedTuple):
    """A query's n-grams, the rarest first."""

    grams: U32
    shares: F32  # of each, in the query's vector of length one
    weights: F32  # (n-grams of all texts,): what each occurrence in a text adds, but for its length


@numba.njit(nogil=True)
def _gather(
    block: int,
    least: float,
    query: _Query,
    k: int,
    partial: F32,
    touched: U32,
    weights: Weights,
) -> int:
    """Read a block's lists of the query's n-grams, rarest first; give how many texts may win."""
    base, starts, postings = weights.block_starts[block], weights.posting_starts, weights.postings
    n, probed, known, read = 0, 2.0, least, 1 << 62
    square, potential, volume = 0.0, 0.0, 0
    for j, gram in enumerate(query.grams):
        length = starts[gram, block + 1] - starts[gram, block]
        if length:
            square += np.float64(query.shares[j]) ** 2
            potential += query.weights[gram]
            volume += length
    potential *= weights.repeats[block]
    for j, gram in enumerate(query.grams):
        start, end = starts[gram, block], starts[gram, block + 1]
        if start == end:
            continue
        length = np.sqrt(max(square, 0.0))
        bound = min(length, potential / weights.shortest[block]) + _SLACK
        if least < 0 and n >= k and bound < _PROBE * probed and volume > n + _COST * k:
            probed = bound
            known = max(known, _kth_best(base, partial, touched, n, k, query.weights, weights))
        step = query.weights[gram]
        if bound < known:
            if read >= n:
                read = 0
                n = _survivors(
                    base, partial, touched, n, known, length, potential, weights.inverse_norm
                )
            if n * _COST < volume:
                return n
            read += end - start
            _raise_list(start, end, base, step, postings, partial)
        else:
            n = _add_list(start, end, base, step, postings, partial, touched, n)
        square -= np.float64(query.shares[j]) ** 2
        potential -= step * weights.repeats[block]
        volume -= end - start
    if least < 0 and n > k:
        known = max(known, _kth_best(base, partial, touched, n, k, query.weights, weights))
    return _survivors(base, partial, touched, n, known, 0.0, 0.0, weights.inverse_norm)


@numba.njit(nogil=True)
def _search_one(
    query: _Query, partial: F32, touched: U32, weights: Weights, texts: I64, scores: F32
) -> None:
    """Search the blocks, the most promising first, until none is left that can give more."""
    square, potential, of_length = 0.0, 0.0, 0.0
    for j, gram in enumerate(query.grams):
        square += np.float64(query.shares[j]) ** 2
        potential += query.weights[gram]
        of_length = max(of_length, query.shares[j] / weights.rarity[gram])
    bounds = np.minimum(potential * weights.repeats / weights.shortest, of_length * weights.longest)
    kept, least = 0, -1.0
    for block in np.argsort(-bounds, kind="mergesort"):
        if min(bounds[block], np.sqrt(square)) + _SLACK < least:
            continue
        n = _gather(block, least, query, len(texts), partial, touched, weights)
        for i in range(n):
            text = weights.block_starts[block] + touched[i]
            partial[touched[i]] = 0
            score = _score(text, query.weights, weights)
            if score >= least:
                kept = _insert(text, score, texts, scores, kept, weights.ranks)
                if kept == len(texts):
                    least = scores[kept - 1]


@numba.njit(nogil=True, cache=True)
def search_texts(
    queries: Texts, vocabulary: Vocabulary, weights: Weights, unknown: float, k: int
) -> tuple[I64, F32]:
    """Find the k nearest texts of each query; -1 and -inf where fewer share an n-gram."""
    n_queries = len(queries.starts) - 1
    texts = np.full((n_queries, k), -1, np.int64)
    scores = np.full((n_queries, k), -np.inf, np.float32)
    widest = np.max(np.diff(weights.block_starts)) if len(weights.shortest) else 0
    partial = np.zeros(widest, np.float32)
    touched = np.empty(widest + 1, np.uint32)
    added = np.zeros(len(weights.rarity), np.float32)
    for q in range(n_queries):
        grams, shares = _weigh_query(queries, q, vocabulary, weights.rarity, unknown, added)
        lengths = weights.posting_starts[grams, -1] - weights.posting_starts[grams, 0]
        order = np.argsort(lengths)
        query = _Query(grams[order], shares[order], added)
        _search_one(query, partial, touched, weights, texts[q], scores[q])
        added[grams] = 0
    return texts, scores


@numba.njit(nogil=True, cache=True)
def score_texts(
    queries: Texts, vocabulary: Vocabulary, weights: Weights, unknown: float, texts: I64
) -> F32:
    """Compute the cosine of each query with texts of its own choice; 0 where a text is -1."""
    scores = np.zeros(texts.shape, np.float32)
    added = np.zeros(len(weights.rarity), np.float32)
    for q in range(len(queries.starts) - 1):
        grams, _ = _weigh_query(queries, q, vocabulary, weights.rarity, unknown, added)
        for i in range(texts.shape[1]):
            if texts[q, i] >= 0:
                scores[q, i] = _score(texts[q, i], added, weights)
        added[grams] = 0
    return scores
