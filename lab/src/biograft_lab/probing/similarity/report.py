"""Similarity probe: judge similarity scores, and report accuracy on D1, D2 and D3.

Each different text is encoded once. A query is right if its positive is more similar to it than
every hard negative; a tie is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.arrays import Flags
from biograft.metrics import bootstrap_interval, paired_bootstrap
from biograft.metrics.linking import Values
from biograft.progress import Progress
from biograft_lab.probing.similarity.names import MIN_JACCARD, MIN_SHARED, RARE
from biograft_lab.probing.similarity.queries import SimilarityQuery

Vectors = npt.NDArray[np.float32]
Scores = npt.NDArray[np.floating]
Rows = npt.NDArray[np.int64]

TIE = 1e-6
"""Cosines that differ less are tied; batching changes them as much."""
_CHUNK = 512


@dataclass(frozen=True)
class QueryNames:
    """The distinct texts of queries, and the texts of each query."""

    texts: list[str]
    rows: Rows  # (queries, 2 + negatives): query, positive, negatives

    def cosines(self, vectors: Vectors) -> Scores:
        """Return the cosines of candidates, positives first: (queries, 1 + negatives)."""
        unit = _to_unit_length(vectors)
        scores = np.empty((len(self.rows), self.rows.shape[1] - 1), np.float32)
        for start in range(0, len(self.rows), _CHUNK):
            subset = self.rows[start : start + _CHUNK]
            offered = unit[subset[:, 1:]]  # (part, 1 + negatives, dim)
            scores[start : start + _CHUNK] = np.einsum("qd,qkd->qk", unit[subset[:, 0]], offered)
        return scores


Similarity = Callable[[QueryNames, Progress | None], Scores]
"""Scores the candidates of each query: (queries, 1 + negatives)."""


def collect_names(queries: Sequence[SimilarityQuery]) -> QueryNames:
    """Collect the distinct texts of queries, in order of first appearance."""
    codes: dict[str, int] = {}
    rows = [
        [codes.setdefault(text, len(codes)) for text in (q.query, q.positive, *q.negatives)]
        for q in queries
    ]
    return QueryNames(list(codes), np.array(rows, np.int64))


def judge(scores: Scores) -> Flags:
    """Return which queries are right: the positive is strictly best."""
    return np.asarray(scores[:, 0] > scores[:, 1:].max(axis=1) + TIE)


def _to_unit_length(vectors: Vectors) -> Vectors:
    """Normalise vectors; zero vectors, as of names of unknown words, stay zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(norms, np.finfo(np.float32).tiny), np.float32)


SUBSETS = ("D1", "D2", "D3")


@dataclass(frozen=True)
class SimilarityReport:
    """Computes metrics of any similarity measure on the same queries."""

    queries: Sequence[SimilarityQuery]
    rare: int = RARE
    seed: int = 0

    @cached_property
    def subsets(self) -> dict[str, Flags]:
        """Masks of the queries in D1 (all), D2 and D3."""
        frequencies = (query.frequencies for query in self.queries)
        rare = [pair is not None and min(pair) <= self.rare for pair in frequencies]
        return {
            "D1": np.ones(len(self.queries), np.bool_),
            "D2": np.array([query.same_neighbours for query in self.queries], np.bool_),
            "D3": np.array(rare, np.bool_),
        }

    @property
    def chance(self) -> float:
        """Accuracy by chance."""
        return 1 / (1 + len(self.queries[0].negatives))

    def empty(self) -> dict[str, str]:
        """Return why subsets without queries are empty."""
        counted = any(query.frequencies is not None for query in self.queries)
        why = {
            "D2": f"no query's concepts share {MIN_SHARED} neighbours or more with a Jaccard "
            f"of {MIN_JACCARD} or more",
            "D3": f"no query has a name found {self.rare:,} times or less"
            if counted
            else "names were not counted; give annotated text with --corpus",
        }
        return {subset: why[subset] for subset, mask in self.subsets.items() if not mask.any()}

    def metrics(self, hits: Flags) -> dict[str, Any]:
        """Return the accuracy on each subset as plain values, in percent.

        Queries of the same concepts are resampled together. Empty subsets have n 0 and a reason.
        """
        results: dict[str, Any] = {}
        for subset, mask in self.subsets.items():
            n = int(mask.sum())
            if not n:
                results[subset] = {
                    "acc@1": None,
                    "n": 0,
                    "interval": None,
                    "why": self.empty()[subset],
                }
                continue
            values, groups = self._subset_values(hits, mask)
            interval = bootstrap_interval(values, groups, seed=self.seed)
            results[subset] = {
                "acc@1": _percent(float(values.mean())),
                "n": n,
                "interval": [_percent(interval.low), _percent(interval.high)],
            }
        return results

    def compare(self, a: Flags, b: Flags) -> dict[str, Any]:
        """Compare ``a`` and ``b`` on each subset with queries, in percent."""
        results: dict[str, Any] = {}
        for subset, mask in self.subsets.items():
            if mask.any():
                (first, groups), (second, _) = (
                    self._subset_values(a, mask),
                    self._subset_values(b, mask),
                )
                difference = paired_bootstrap(first, second, groups, seed=self.seed)
                results[subset] = {
                    "difference": _percent(difference.difference),
                    "interval": [
                        _percent(x) for x in (difference.interval.low, difference.interval.high)
                    ],
                    "p": round(difference.p, 4),
                }
        return results

    def _subset_values(self, hits: Flags, mask: Flags) -> tuple[Values, list[tuple[str, ...]]]:
        """Return the results of a subset, and groups of dependent ones."""
        groups = [tuple(sorted(self.queries[k].concepts)) for k in np.flatnonzero(mask).tolist()]
        return hits[mask].astype(np.float64), groups


def _percent(fraction: float) -> float:
    return round(100 * fraction, 2)
