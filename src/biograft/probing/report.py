"""Figures of a probe: recall of each relation, and its mean over relations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from biograft.metrics import Difference, Interval, bootstrap_interval, paired_bootstrap
from biograft.metrics.judgements import Flags, Values
from biograft.probing.cloze import ClozeAnswers
from biograft.probing.judging import Gold
from biograft.probing.queries import ClozeQuery

PARTS = ("all", "type 1", "type 2")


@dataclass(frozen=True, slots=True)
class Recall:
    """Recall of some queries: the mean over relations, as each relation counts the same."""

    value: float
    interval: Interval
    """By drawing relations."""
    n_queries: int
    n_relations: int

    def to_json(self) -> dict[str, Any]:
        """Give it as plain values, in percent."""
        return {
            "recall": _percent(self.value),
            "interval": [_percent(self.interval.low), _percent(self.interval.high)],
            "n_queries": self.n_queries,
            "n_relations": self.n_relations,
        }


@dataclass(frozen=True, slots=True)
class RelationRecall:
    """Recall of one relation: (share that is right, number of queries) of each part."""

    relation: str
    parts: dict[str, tuple[float, int]]

    def to_json(self) -> dict[str, Any]:
        """Give it as plain values, in percent."""
        told: dict[str, Any] = {"relation": self.relation}
        for part, (share, n) in self.parts.items():
            told[part] = {"recall": _percent(share), "n": n} if n else {"n": 0}
        return told


@dataclass(frozen=True)
class ClozeReport:
    """What was asked, for the figures of any model that was asked it."""

    queries: Sequence[ClozeQuery]
    gold: Sequence[Gold]
    seed: int = 0

    def part(self, name: str) -> Flags:
        """Choose the queries of a part."""
        given_away = np.array([gold.given_away for gold in self.gold], np.bool_)
        if name == "all":
            return np.ones(len(given_away), np.bool_)
        return given_away if name == "type 1" else ~given_away

    def recall(self, hits: Flags, part: str = "all") -> Recall:
        """Compute the macro recall of a part."""
        values = self._by_relation(hits, self.part(part))
        return Recall(
            float(values.mean()) if len(values) else 0.0,
            bootstrap_interval(values, seed=self.seed),
            int(self.part(part).sum()),
            len(values),
        )

    def relations(self, hits: Flags) -> list[RelationRecall]:
        """Compute the recall of each relation, by name."""
        names = np.array([query.relation for query in self.queries], object)
        chosen = {part: self.part(part) for part in PARTS}
        return [
            RelationRecall(
                relation,
                {part: _share(hits[own & (names == relation)]) for part, own in chosen.items()},
            )
            for relation in sorted(set(names.tolist()))
        ]

    def compare(self, a: Flags, b: Flags, part: str = "all") -> Difference:
        """Say how much better ``a`` is than ``b``, by drawing relations."""
        own = self.part(part)
        return paired_bootstrap(
            self._by_relation(a, own), self._by_relation(b, own), seed=self.seed
        )

    def to_json(self, answers: ClozeAnswers) -> dict[str, Any]:
        """Give all figures of one model as plain values, in percent."""
        by_length = {
            str(n): _percent(self.recall(answers.right[:, k]).value)
            for k, n in enumerate(answers.lengths)
        }
        return {
            "model": answers.model,
            **{part: self.recall(answers.hits, part).to_json() for part in PARTS},
            "by_length": by_length,
            "n_too_long": answers.n_too_long,
            "relations": [each.to_json() for each in self.relations(answers.hits)],
        }

    def _by_relation(self, hits: Flags, own: Flags) -> Values:
        """Give the recall of each relation that has queries in a part, by name."""
        names = np.array([query.relation for query in self.queries], object)[own]
        _, numbers = np.unique(names.astype(str), return_inverse=True)
        n = np.bincount(numbers)
        return np.bincount(numbers, weights=hits[own].astype(np.float64)) / n


def _share(hits: Flags) -> tuple[float, int]:
    return (float(hits.mean()) if len(hits) else 0.0), len(hits)


def _percent(share: float) -> float:
    return round(100 * share, 2)
