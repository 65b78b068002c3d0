"""Comparison of linking results: answers in a file, and paired tests of two runs.

A file of answers has every query of a run with its first answers and its value by each metric that
is a mean over queries. Two runs can be compared if their queries and their scorer are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from biograft.artifacts import ArtifactKind
from biograft.errors import ConfigError, shorten
from biograft.evaluation.gold import LinkQuery
from biograft.evaluation.linking import LinkingResult
from biograft.linking.candidates import Candidate
from biograft.metrics.linking import Metric, Values
from biograft.metrics.significance import (
    Difference,
    approximate_randomisation,
    mcnemar_exact,
    paired_bootstrap,
)

ANSWERS = ArtifactKind(
    format="biograft-answers",
    version=1,
    called="file of answers",
    remedy="evaluate again with --save-answers",
    file="",
    keys=("scorer", "queries"),
)
ANSWERS_FILE = "answers.json"
"""The file of answers in the folder of a report."""


class QueryKey(NamedTuple):
    """Key by which two queries are equal."""

    document: str
    start: int | None
    end: int | None
    mention: str
    gold: tuple[str, ...]

    @classmethod
    def of(cls, query: LinkQuery, document: str) -> QueryKey:
        """Return the key of a query; a gold that consists of names is compared by them."""
        gold = query.gold_names or tuple(sorted(query.gold))
        return cls(document, query.start, query.end, query.mention, gold)

    def __str__(self) -> str:
        place = f"{self.start}-{self.end} of " if self.start is not None else ""
        gold = " ".join(self.gold) or "NIL"
        return f"{shorten(repr(self.mention))} ({place}{self.document}, gold {gold})"


@dataclass(frozen=True, slots=True)
class ScoredQueries:
    """The queries of a run with their value by each metric."""

    scorer: str
    queries: tuple[QueryKey, ...]
    values: Mapping[str, Values]
    """Metric -> value of each query."""

    @classmethod
    def of(cls, result: LinkingResult, metrics: Sequence[str] = ()) -> ScoredQueries:
        """Return the queries of a result with its metrics, and others, that are means over them."""
        names = dict.fromkeys([*result.metrics, *metrics])
        found = {name: Metric.parse(name).values(result.judgements) for name in names}
        documents = result.judgements.documents
        keys = (QueryKey.of(r.query, d) for r, d in zip(result.rows, documents, strict=True))
        values = {name: each for name, each in found.items() if each is not None}
        return cls(result.scorer, tuple(keys), values)

    @classmethod
    def load(cls, path: Path) -> ScoredQueries:
        """Load a file of answers, or that of a report's folder."""
        file = path / ANSWERS_FILE if path.is_dir() else path
        content = ANSWERS.read(file)
        try:
            entries = content["queries"]
            keys = tuple(_key(entry) for entry in entries)
            names = entries[0]["metrics"]
            values = {
                name: np.array([float(entry["metrics"][name]) for entry in entries])
                for name in names
            }
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ANSWERS.damaged(file, repr(error)) from error
        return cls(str(content["scorer"]), keys, values)

    def check_same_queries(self, other: ScoredQueries) -> None:
        """Refuse a run on other queries, or by another scorer."""
        if self.scorer != other.scorer:
            raise ConfigError(
                f"runs to compare: one is judged by the {self.scorer} scorer, the other by the "
                f"{other.scorer} one; evaluate both with the same --scorer"
            )
        if len(self.queries) != len(other.queries):
            raise ConfigError(
                f"runs to compare: one has {len(self.queries):,} queries, the other "
                f"{len(other.queries):,}; evaluate both on the same gold with the same filters"
            )
        for n, (mine, theirs) in enumerate(zip(self.queries, other.queries, strict=True), 1):
            if mine != theirs:
                raise ConfigError(
                    f"runs to compare: query {n:,} of one is {mine}, of the other {theirs}; "
                    "evaluate both on the same gold in the same order"
                )


def _key(entry: Mapping[str, Any]) -> QueryKey:
    document, start, end, mention, gold = (entry[name] for name in QueryKey._fields)
    return QueryKey(document, start, end, mention, tuple(gold))


def save_answers(result: LinkingResult, path: Path, *, overwrite: bool = False) -> None:
    """Write every query with its first answers and its value by each metric."""
    scored = ScoredQueries.of(result)
    queries = [
        {
            **key._asdict(),
            "answers": [[_answer(candidate) for candidate in ranked] for ranked in row.answers],
            "metrics": {name: float(of[n]) for name, of in scored.values.items()},
        }
        for n, (key, row) in enumerate(zip(scored.queries, result.rows, strict=True))
    ]
    content = {"scorer": result.scorer, "n": result.n, "queries": queries}
    ANSWERS.write(path, content, overwrite=overwrite)


def _answer(candidate: Candidate) -> dict[str, Any]:
    return {"concept": candidate.concept, "name": candidate.name, "score": float(candidate.score)}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Differences of two runs on the same queries."""

    metric: str
    bootstrap: Difference
    randomisation_p: float
    mcnemar_p: float | None
    """None if a query may be right in part (ties under the strict rule, ranks)."""

    def to_json(self) -> dict[str, Any]:
        """Return the tests as plain values; the difference in percentage points."""
        interval = self.bootstrap.interval
        return {
            "difference": round(100 * self.bootstrap.difference, 4),
            "interval": [round(100 * bound, 4) for bound in (interval.low, interval.high)],
            "bootstrap_p": self.bootstrap.p,
            "randomisation_p": self.randomisation_p,
            "mcnemar_p": self.mcnemar_p,
        }


Run = LinkingResult | ScoredQueries


def paired(a: Run, b: Run, metric: str = "acc@1", *, seed: int = 0) -> Comparison:
    """Compare two runs on the same queries, resampling documents."""
    return compare(a, b, (metric,), seed=seed)[0]


def compare(
    a: Run, b: Run, metrics: Sequence[str] | None = None, *, seed: int = 0
) -> list[Comparison]:
    """Compare two runs by several metrics; without a choice, by all that both have."""
    first, second = (
        run if isinstance(run, ScoredQueries) else ScoredQueries.of(run) for run in (a, b)
    )
    first.check_same_queries(second)
    shared = [name for name in first.values if name in second.values]
    for name in metrics or ():
        if name not in shared:
            raise ConfigError(
                f"paired: {name} has no value for each query of both runs; choose one of "
                f"{', '.join(shared)}"
            )
    documents = [key.document for key in first.queries]
    chosen = shared if metrics is None else metrics
    return [
        _compare(name, first.values[name], second.values[name], documents, seed) for name in chosen
    ]


def _scored(run: Run, metrics: Sequence[str]) -> ScoredQueries:
    return run if isinstance(run, ScoredQueries) else ScoredQueries.of(run, metrics)


def _compare(
    metric: str, first: Values, second: Values, documents: Sequence[str], seed: int
) -> Comparison:
    is_binary = all(np.isin(values, (0.0, 1.0)).all() for values in (first, second))
    return Comparison(
        metric,
        paired_bootstrap(first, second, documents, seed=seed),
        approximate_randomisation(first, second, documents, seed=seed),
        mcnemar_exact(first == 1, second == 1) if is_binary else None,
    )
