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
from biograft.metrics.linking import Metric, Values
from biograft.metrics.precision_recall import percent
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
        """Return the key of a query; a gold that consists of names is compared by them.

        Args:
            query: A query.
            document: Id of its document.
        """
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
    """Name of the linker or search that answered."""
    queries: tuple[QueryKey, ...]
    """Identity of each query, in order, to align two runs."""
    values: Mapping[str, Values]
    """Metric -> value of each query."""

    @classmethod
    def of(cls, result: LinkingResult) -> ScoredQueries:
        """Return the queries of a result with its metrics that are means over them."""
        found = {name: Metric.parse(name).values(result.judgements) for name in result.metrics}
        documents = result.judgements.documents
        keys = (QueryKey.of(r.query, d) for r, d in zip(result.rows, documents, strict=True))
        values = {name: value for name, value in found.items() if value is not None}
        return cls(result.scorer, tuple(keys), values)

    @classmethod
    def load(cls, path: Path) -> ScoredQueries:
        """Load a file of answers, or that of a report's folder.

        Args:
            path: A file of answers, or the folder of a report.
        """
        file = path / ANSWERS_FILE if path.is_dir() else path
        content = ANSWERS.read(file)
        try:
            entries = content["queries"]
            keys = tuple(
                QueryKey(
                    entry["document"],
                    entry["start"],
                    entry["end"],
                    entry["mention"],
                    tuple(entry["gold"]),
                )
                for entry in entries
            )
            names = entries[0]["metrics"]
            values = {
                name: np.array([float(entry["metrics"][name]) for entry in entries])
                for name in names
            }
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ANSWERS.damaged(file, repr(error)) from error
        return cls(str(content["scorer"]), keys, values)

    def check_same_queries(self, other: ScoredQueries) -> None:
        """Refuse a run on other queries, or by another scorer.

        Args:
            other: The run to compare with.
        """
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


def save_answers(result: LinkingResult, path: Path, *, overwrite: bool = False) -> None:
    """Write every query with its first answers and its value by each metric.

    Args:
        result: The evaluation.
        path: The file.
        overwrite: Replace an earlier result.
    """
    scored = ScoredQueries.of(result)
    queries = [
        {
            **key._asdict(),
            "answers": [
                [{"concept": c.concept, "name": c.name, "score": float(c.score)} for c in ranked]
                for ranked in row.answers
            ],
            "metrics": {name: float(of[n]) for name, of in scored.values.items()},
        }
        for n, (key, row) in enumerate(zip(scored.queries, result.rows, strict=True))
    ]
    content = {"scorer": result.scorer, "n": result.n, "queries": queries}
    ANSWERS.write(path, content, overwrite=overwrite)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Differences of two runs on the same queries."""

    metric: str
    """Name of the metric, as ``acc@1``."""
    bootstrap: Difference
    """Difference of the means with its bootstrap interval."""
    randomisation_p: float
    """Two-sided p-value of the paired randomisation test."""
    mcnemar_p: float | None
    """None if a query may be right in part (ties under the strict rule, ranks)."""

    def to_json(self) -> dict[str, Any]:
        """Return the tests as plain values; the difference in percentage points."""
        return {
            "difference": percent(self.bootstrap.difference),
            "interval": self.bootstrap.interval.to_json(),
            "bootstrap_p": self.bootstrap.p,
            "randomisation_p": self.randomisation_p,
            "mcnemar_p": self.mcnemar_p,
        }


Run = LinkingResult | ScoredQueries


def paired(a: Run, b: Run, metric: str = "acc@1", *, seed: int = 0) -> Comparison:
    """Compare two runs on the same queries, resampling documents.

    Args:
        a: A run.
        b: Another run on the same queries.
        metric: A metric that is a mean over queries.
        seed: Seed of the resamples.
    """
    return compare(a, b, (metric,), seed=seed)[0]


def compare(
    a: Run, b: Run, metrics: Sequence[str] | None = None, *, seed: int = 0
) -> list[Comparison]:
    """Compare two runs by several metrics.

    Args:
        a: A run.
        b: Another run on the same queries.
        metrics: Names of metrics that are means over queries; None: all that both runs have.
        seed: Seed of the resamples.

    Raises:
        ConfigError: The runs differ in their queries or their scorer, or lack a metric.
    """
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
    comparisons = []
    for name in shared if metrics is None else metrics:
        values = first.values[name], second.values[name]
        is_binary = all(np.isin(run, (0.0, 1.0)).all() for run in values)
        comparisons.append(
            Comparison(
                name,
                paired_bootstrap(*values, documents, seed=seed),
                approximate_randomisation(*values, documents, seed=seed),
                mcnemar_exact(values[0] == 1, values[1] == 1) if is_binary else None,
            )
        )
    return comparisons
