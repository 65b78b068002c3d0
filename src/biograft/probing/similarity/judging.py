"""From queries to right and wrong: which of the names offered is the most similar.

Whatever compares names sees each different text once. A query is right if its positive is more
similar to it than every look-alike; a tie is wrong, since nothing was told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from biograft.metrics.judgements import Flags
from biograft.probing.similarity.queries import SimilarityQuery
from biograft.progress import Progress

Vectors = npt.NDArray[np.float32]
Scores = npt.NDArray[np.floating]
Places = npt.NDArray[np.int64]

TIE = 1e-6
"""Cosines nearer than this are one: how texts are batched moves them as much."""
_AT_ONCE = 512


@dataclass(frozen=True)
class AskedNames:
    """The different texts of queries, and which of them each query is about."""

    texts: list[str]
    places: Places  # (queries, 2 + negatives): the query, its positive, the look-alikes

    def cosines(self, vectors: Vectors) -> Scores:
        """Compare what is offered with each query: (queries, 1 + negatives), positives first."""
        unit = _to_unit_length(vectors)
        scores = np.empty((len(self.places), self.places.shape[1] - 1), np.float32)
        for start in range(0, len(self.places), _AT_ONCE):
            part = self.places[start : start + _AT_ONCE]
            offered = unit[part[:, 1:]]  # (part, 1 + negatives, dim)
            scores[start : start + _AT_ONCE] = np.einsum("qd,qkd->qk", unit[part[:, 0]], offered)
        return scores


Similarity = Callable[[AskedNames, Progress | None], Scores]
"""Anything that scores what is offered to each query: (queries, 1 + negatives)."""


def gather(queries: Sequence[SimilarityQuery]) -> AskedNames:
    """Number the different texts of queries in the order they are met."""
    numbers: dict[str, int] = {}
    rows = [
        [numbers.setdefault(text, len(numbers)) for text in (q.query, q.positive, *q.negatives)]
        for q in queries
    ]
    return AskedNames(list(numbers), np.array(rows, np.int64))


def judge(scores: Scores) -> Flags:
    """Say which queries are right: the positive alone is the best."""
    return np.asarray(scores[:, 0] > scores[:, 1:].max(axis=1) + TIE)


def _to_unit_length(vectors: Vectors) -> Vectors:
    """Divide by the lengths; what has none, such as a name of unknown words, stays zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(norms, np.finfo(np.float32).tiny), np.float32)
