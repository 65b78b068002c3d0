"""Evaluate a linker: ask every query, judge the answers, put figures with intervals on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np

from biograft.errors import ConfigError
from biograft.evaluation.gold import LinkQuery
from biograft.evaluation.ids import Resolved, StoreIds, resolve_gold
from biograft.evaluation.judge import Answers, NameRanker, NilRule, OwnIds, Ranker, Search, judge
from biograft.kb import KnowledgeBase
from biograft.linking.linker import Linker
from biograft.metrics.calibration import given_answers
from biograft.metrics.linking import check_scorer
from biograft.metrics.metric import Judgements, Metric
from biograft.metrics.significance import (
    LEVEL,
    N_RESAMPLES,
    Difference,
    Interval,
    approximate_randomisation,
    bootstrap_interval,
    mcnemar_exact,
    paired_bootstrap,
)
from biograft.progress import Progress

CUTOFFS = (1, 5, 10, 30)
KEPT_ANSWERS = 5
"""Candidates of each part that a result keeps to be looked at."""
NAMES_PER_CONCEPT = 4
"""How many names are asked for each place of the strict rule, which counts concepts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationConfig:
    """How an evaluation is run, beside what is asked and by which rule it is scored."""

    ks: tuple[int, ...] = CUTOFFS
    """How many answers count, for acc@k and recall@k."""
    nil_below: float | None = None
    """Answers below this probability (or score, without probability) are NIL; None: none are."""
    nil_by_score: bool = False
    """``nil_below`` is a score, though answers may carry probabilities."""
    n_resamples: int = N_RESAMPLES
    level: float = LEVEL
    seed: int = 0
    batch: int = 512

    def __post_init__(self) -> None:
        if not self.ks or min(self.ks) < 1:
            raise ConfigError(f"ks: expected numbers from 1, found {self.ks}")
        if not 0 < self.level < 1:
            raise ConfigError(f"level: expected a number between 0 and 1, found {self.level}")
        for field, value in (("n_resamples", self.n_resamples), ("batch", self.batch)):
            if value < 1:
                raise ConfigError(f"{field}: expected at least 1, found {value}")

    @property
    def nil_rule(self) -> NilRule | None:
        """When an answer is taken for NIL."""
        return None if self.nil_below is None else NilRule(self.nil_below, self.nil_by_score)


@dataclass(frozen=True, slots=True)
class QueryRow:
    """A query with its first answers and how they were judged."""

    query: LinkQuery
    answers: Answers
    right: float
    """Chance that the first answers are right: 0 or 1, or between them for equal scores."""
    rank: int | None
    """First k at which the query may be right; None if it never is."""
    answered_nil: bool


@dataclass(frozen=True, slots=True)
class LinkingResult:
    """The figures of a run, as fractions of 1, and every query with its answers."""

    scorer: str
    metrics: dict[str, float]
    intervals: dict[str, Interval]
    """By documents where the gold has them, else by queries; of metrics that are means."""
    judged: Judgements
    rows: tuple[QueryRow, ...]
    resolved: Resolved

    def __getitem__(self, metric: str) -> float:
        return self.metrics[metric]

    @property
    def n(self) -> int:
        """How many queries were asked."""
        return len(self.rows)

    def to_json(self) -> dict[str, Any]:
        """Give the figures as plain values, in percent."""
        return {
            "scorer": self.scorer,
            "n": self.n,
            **{name: _percent(value) for name, value in self.metrics.items()},
            "intervals": {
                name: [_percent(i.low), _percent(i.high)] for name, i in self.intervals.items()
            },
            "unit": "percent",
            "n_documents": len(set(self.judged.documents)),
            "n_unknown_gold": len(self.resolved.unknown),
            "n_unreachable": self.resolved.n_unreachable,
        }


def _percent(value: float) -> float:
    return round(100 * value, 4)


def evaluate_linking(
    ranker: Ranker | Search,
    base: KnowledgeBase,
    queries: Sequence[LinkQuery],
    scorer: str = "lenient",
    config: EvaluationConfig | None = None,
    progress: Progress | None = None,
) -> LinkingResult:
    """Ask a ranker (or a search for names) every query and score it.

    Gives ``acc@k`` and ``recall@k`` for all k asked for, ``mrr``, what concerns NIL if a gold
    answer is NIL, and the calibration error where all answers that are not NIL carry
    probabilities.
    """
    ids = StoreIds(base)
    asked = ranker if hasattr(ranker, "rank") else NameRanker(ranker, base)
    return run_queries(asked, resolve_gold(queries, ids), ids.own, scorer, config, progress)


def run_queries(
    ranker: Ranker,
    resolved: Resolved,
    own_ids: OwnIds,
    scorer: str = "lenient",
    config: EvaluationConfig | None = None,
    progress: Progress | None = None,
) -> LinkingResult:
    """Evaluate where gold and concept ids are already spelled alike, without a store."""
    check_scorer(scorer)
    config, progress = config or EvaluationConfig(), progress or Progress(enabled=False)
    queries = resolved.queries
    if not queries:
        raise ConfigError("queries: expected at least one, found none")
    depth = max(config.ks)
    n_asked = depth * (NAMES_PER_CONCEPT if scorer == "strict" else 1)
    pieces, rows = [], []
    progress.start("linking")
    for chosen in _batches(queries, config.batch):
        answers = ranker.rank(chosen, n_asked)
        piece = judge(
            chosen, answers, own_ids, scorer=scorer, depth=depth, nil_rule=config.nil_rule
        )
        pieces.append(piece)
        rows += _rows(chosen, answers, piece)
        progress.advance(len(chosen), len(rows) / len(queries))
    progress.finish()
    judged = Judgements.join(pieces, _documents(queries))
    metrics = _metrics(judged, sorted(set(config.ks)))
    figures = {str(metric): metric(judged) for metric in metrics}
    intervals = _intervals(metrics, judged, config)
    return LinkingResult(scorer, figures, intervals, judged, tuple(rows), resolved)


def _batches(queries: Sequence[LinkQuery], size: int) -> Iterator[Sequence[LinkQuery]]:
    """Ask that many at once, and all queries of a document together: one may explain another."""
    start = 0
    while start < len(queries):
        stop = min(start + size, len(queries))
        document = queries[stop - 1].document
        while document and stop < len(queries) and queries[stop].document == document:
            stop += 1
        yield queries[start:stop]
        start = stop


def _documents(queries: Sequence[LinkQuery]) -> tuple[str, ...]:
    """Say which document each query is from; one without stands for itself."""
    return tuple(query.document or f"query {n}" for n, query in enumerate(queries))


def _metrics(judged: Judgements, ks: Sequence[int]) -> list[Metric]:
    names = [f"acc@{k}" for k in ks] + [f"recall@{k}" for k in ks] + ["mrr"]
    if judged.nil.any():
        names += ["nil_precision", "nil_recall", "nil_f1"]
    probability, _ = given_answers(judged)
    if len(probability) and not np.isnan(probability).any():
        names += ["ece", "ece_mass", "brier"]
    return [Metric.parse(name) for name in names]


def _intervals(
    metrics: Sequence[Metric], judged: Judgements, config: EvaluationConfig
) -> dict[str, Interval]:
    found = {}
    for metric in metrics:
        values = metric.values(judged)
        if values is not None:
            found[str(metric)] = bootstrap_interval(
                values,
                judged.documents,
                n_resamples=config.n_resamples,
                level=config.level,
                seed=config.seed,
            )
    return found


def _rows(
    queries: Sequence[LinkQuery], answers: Sequence[Answers], judged: Judgements
) -> list[QueryRow]:
    rows = []
    for place, query in enumerate(queries):
        parts = answers[place] if place < len(answers) else ()
        possible = np.flatnonzero(judged.right[place])
        rows.append(
            QueryRow(
                query,
                tuple(tuple(ranked[:KEPT_ANSWERS]) for ranked in parts),
                float(judged.right[place, 0]),
                int(possible[0]) + 1 if len(possible) else None,
                bool(judged.answered_nil[place]),
            )
        )
    return rows


def nil_as_linked(linker: Linker, config: EvaluationConfig | None = None) -> EvaluationConfig:
    """Take for NIL what the linker takes for it.

    That is by the threshold it was opened with, else by that of its calibration; a linker with
    neither threshold nor calibration leaves it to its ranker, some of which know a score.
    """
    config = config or EvaluationConfig()
    if linker.threshold is not None:
        return replace(config, nil_below=linker.threshold, nil_by_score=False)
    nil_below = getattr(linker.ranker, "nil_below", None)
    if linker.calibration is None and nil_below is not None and isfinite(nil_below):
        return replace(config, nil_below=float(nil_below), nil_by_score=True)
    return replace(config, nil_below=None, nil_by_score=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two runs on the same queries differ."""

    metric: str
    bootstrap: Difference
    randomisation_p: float
    mcnemar_p: float | None
    """None where queries may be half right (equal scores under the strict rule)."""


def paired(
    a: LinkingResult, b: LinkingResult, metric: str = "acc@1", *, seed: int = 0
) -> Comparison:
    """Compare two runs on the same queries, drawing documents together."""
    asked = [[(r.query.document, r.query.mention, r.query.gold) for r in x.rows] for x in (a, b)]
    if asked[0] != asked[1]:
        raise ConfigError("paired: expected two runs on the same queries, in the same order")
    values = [Metric.parse(metric).values(result.judged) for result in (a, b)]
    first, second = values
    if first is None or second is None:
        raise ConfigError(f"paired: {metric} has no value for each query; choose acc@1 or mrr")
    whole = all(np.isin(value, (0.0, 1.0)).all() for value in (first, second))
    documents = a.judged.documents
    return Comparison(
        metric,
        paired_bootstrap(first, second, documents, seed=seed),
        approximate_randomisation(first, second, documents, seed=seed),
        mcnemar_exact(first == 1, second == 1) if whole else None,
    )
