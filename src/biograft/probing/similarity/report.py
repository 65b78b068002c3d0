"""From queries to right and wrong: which of the names offered is the most similar.

Whatever compares names sees each different text once. A query is right if its positive is more
similar to it than every look-alike; a tie is wrong, since nothing was told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.metrics import bootstrap_interval, paired_bootstrap
from biograft.metrics.metric import Flags, Values
from biograft.probing.similarity.names import LEAST_JACCARD, LEAST_SHARED, RARE
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


PARTS = ("D1", "D2", "D3")


@dataclass(frozen=True)
class SimilarityReport:
    """What was asked, for the figures of anything that was asked it."""

    queries: Sequence[SimilarityQuery]
    rare: int = RARE
    seed: int = 0

    @cached_property
    def parts(self) -> dict[str, Flags]:
        """Say which queries belong to D1 (all), D2 and D3."""
        known = (query.frequencies for query in self.queries)
        rare = [told is not None and min(told) <= self.rare for told in known]
        return {
            "D1": np.ones(len(self.queries), np.bool_),
            "D2": np.array([query.same_neighbours for query in self.queries], np.bool_),
            "D3": np.array(rare, np.bool_),
        }

    @property
    def chance(self) -> float:
        """Share that is right by guessing."""
        return 1 / (1 + len(self.queries[0].negatives))

    def empty(self) -> dict[str, str]:
        """Say of each part without a query why it has none."""
        counted = any(query.frequencies is not None for query in self.queries)
        why = {
            "D2": f"no query's concepts share {LEAST_SHARED} neighbours or more with a Jaccard "
            f"of {LEAST_JACCARD} or more",
            "D3": f"no query has a name found {self.rare:,} times or less"
            if counted
            else "names were not counted; give annotated text with --corpus",
        }
        return {part: why[part] for part, chosen in self.parts.items() if not chosen.any()}

    def figures(self, hits: Flags) -> dict[str, Any]:
        """Give accuracy on each part as plain values, in percent; queries of concepts go together.

        A part without queries has n 0 and says why.
        """
        told: dict[str, Any] = {}
        for part, chosen in self.parts.items():
            n = int(chosen.sum())
            if not n:
                told[part] = {"acc@1": None, "n": 0, "interval": None, "why": self.empty()[part]}
                continue
            values, groups = self._of_part(hits, chosen)
            interval = bootstrap_interval(values, groups, seed=self.seed)
            told[part] = {
                "acc@1": _percent(float(values.mean())),
                "n": n,
                "interval": [_percent(interval.low), _percent(interval.high)],
            }
        return told

    def compare(self, a: Flags, b: Flags) -> dict[str, Any]:
        """Say how much better ``a`` is than ``b`` on each part that has queries, in percent."""
        told: dict[str, Any] = {}
        for part, chosen in self.parts.items():
            if chosen.any():
                (one, groups), (other, _) = self._of_part(a, chosen), self._of_part(b, chosen)
                found = paired_bootstrap(one, other, groups, seed=self.seed)
                told[part] = {
                    "difference": _percent(found.difference),
                    "interval": [_percent(x) for x in (found.interval.low, found.interval.high)],
                    "p": round(found.p, 4),
                }
        return told

    def _of_part(self, hits: Flags, chosen: Flags) -> tuple[Values, list[tuple[str, ...]]]:
        """Give the results of a part, and which of them are not independent."""
        groups = [tuple(sorted(self.queries[k].concepts)) for k in np.flatnonzero(chosen).tolist()]
        return hits[chosen].astype(np.float64), groups


def _percent(share: float) -> float:
    return round(100 * share, 2)
