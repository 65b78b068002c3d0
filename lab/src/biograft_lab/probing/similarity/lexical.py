"""Lexical similarity of names: the cosine of their character n-grams, weighted by rarity.

The n-grams are those of the lexical index: trigrams, and Chinese unigrams and bigrams.
An edit distance has few values on short names and many ties, and Jaro-Winkler already selects the
hard negatives.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from biograft.compute import njit
from biograft.kb.names import normalise
from biograft.linking.lexical.ngrams import build_vocabulary, count_texts, encode_texts, join_texts
from biograft.progress import Progress
from biograft_lab.probing.similarity.report import QueryNames, Scores

_U32 = npt.NDArray[np.uint32]
_I64 = npt.NDArray[np.int64]
_F64 = npt.NDArray[np.float64]


def lexical_similarity(names: QueryNames, progress: Progress | None = None) -> Scores:
    """Score the candidates of each query; rare n-grams have higher weights."""
    texts = join_texts([normalise(text) for text in names.texts])
    vocabulary, n_grams, total = build_vocabulary(texts)
    grams, ends = encode_texts(texts, vocabulary, total)
    weights = np.log(len(names.texts) / count_texts(grams, ends, n_grams)) + 1
    scores: _F64 = _cosines(grams, ends, weights, names.rows)
    return scores


@njit()
def _cosines(grams: _U32, ends: _I64, weights: _F64, rows: _I64) -> _F64:
    """Compare the first text of each row with the others of the row."""
    n_rows, n_columns = rows.shape
    norms = np.empty(len(ends) - 1)
    for text in range(len(norms)):
        norms[text] = np.sqrt(_product(grams, ends, weights, text, text))
    scores = np.zeros((n_rows, n_columns - 1))
    for row in range(n_rows):
        query = rows[row, 0]
        for column in range(1, n_columns):
            candidate = rows[row, column]
            scale = norms[query] * norms[candidate]
            if scale > 0:
                product = _product(grams, ends, weights, query, candidate)
                scores[row, column - 1] = product / scale
    return scores


@njit()
def _product(grams: _U32, ends: _I64, weights: _F64, a: int, b: int) -> float:
    """Return the dot product of the weighted counts of two texts with ascending n-grams."""
    i, j, total = ends[a], ends[b], 0.0
    while i < ends[a + 1] and j < ends[b + 1]:
        gram = grams[i]
        if gram < grams[j]:
            i += 1
        elif gram > grams[j]:
            j += 1
        else:
            start_i, start_j = i, j
            while i < ends[a + 1] and grams[i] == gram:
                i += 1
            while j < ends[b + 1] and grams[j] == gram:
                j += 1
            total += (i - start_i) * (j - start_j) * weights[gram] ** 2
    return total
