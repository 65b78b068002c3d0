"""Linking evaluation: rank all queries, judge the answers, compute metrics with intervals."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from biograft.errors import ConfigError
from biograft.evaluation.gold import GoldConfig, LinkQuery, TextIndex, read_gold
from biograft.evaluation.ids import Resolved, StoreIds, resolve_gold
from biograft.evaluation.judge import Answers, NameRanker, NilRule, OwnIds, Ranker, Search, judge
from biograft.kb import KnowledgeBase
from biograft.linking.linker import Linker
from biograft.linking.queries import check_texts
from biograft.metrics.calibration import concept_answers
from biograft.metrics.linking import check_scorer
from biograft.metrics.metric import Judgements, Metric
from biograft.metrics.significance import (
    LEVEL,
    N_RESAMPLES,
    Interval,
    bootstrap_interval,
)
from biograft.progress import Progress

CUTOFFS = (1, 5, 10, 30)
MAX_ANSWERS = 5
"""Candidates of each part that a result keeps."""
NAMES_PER_CONCEPT = 4
"""Names to retrieve per rank under the strict rule, which counts concepts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationConfig:
    """Configuration of an evaluation: cut-offs, NIL threshold and bootstrap."""

    ks: tuple[int, ...] = CUTOFFS
    """Cut-offs of acc@k and recall@k."""
    nil_below: float | None = None
    """Answers below this probability (or score, without probability) are NIL; None: none."""
    nil_by_score: bool = False
    """``nil_below`` is a score, even if answers have probabilities."""
    n_resamples: int = N_RESAMPLES
    level: float = LEVEL
    seed: int = 0
    batch: int = 512
    context: bool = True
    """Let the linker read the text around a mention. A linker that reads it refuses gold without
    texts."""
    split_mentions: bool = False
    """Let the linker split composite mentions, instead of giving it the parts of the benchmark."""

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
        """The threshold for NIL, if there is one."""
        return None if self.nil_below is None else NilRule(self.nil_below, self.nil_by_score)


@dataclass(frozen=True, slots=True)
class QueryRow:
    """A query with its first answers and their judgement."""

    query: LinkQuery
    answers: Answers
    right: float
    """Probability that the first answers are right: 0 or 1, or between them for ties."""
    rank: int | None
    """First k at which the query may be right; None if it never is."""
    answered_nil: bool


@dataclass(frozen=True, slots=True)
class LinkingResult:
    """The metrics of a run, as fractions, and every query with its answers."""

    scorer: str
    metrics: dict[str, float]
    intervals: dict[str, Interval]
    """Intervals of metrics that are means; resampled by document, or by query without documents."""
    judgements: Judgements
    rows: tuple[QueryRow, ...]
    resolved: Resolved

    def __getitem__(self, metric: str) -> float:
        return self.metrics[metric]

    @property
    def n(self) -> int:
        """Number of queries."""
        return len(self.rows)

    def to_json(self) -> dict[str, Any]:
        """Return the metrics as plain values, in percent."""
        return {
            "scorer": self.scorer,
            "n": self.n,
            **{name: _percent(value) for name, value in self.metrics.items()},
            "intervals": {
                name: [_percent(i.low), _percent(i.high)] for name, i in self.intervals.items()
            },
            "unit": "percent",
            "n_documents": len(set(self.judgements.documents)),
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
    """Evaluate a ranker (or a name search) on queries.

    Computes ``acc@k`` and ``recall@k`` for all cut-offs, ``mrr``, NIL metrics if a gold answer is
    NIL, and calibration metrics if all answers that are not NIL have probabilities.
    """
    config = config or EvaluationConfig()
    if not config.context:
        queries = [replace(query, context="") for query in queries]
    elif isinstance(ranker, Linker) and ranker.uses_context:
        check_texts(queries, "queries", "give --text, or --no-context to link mentions alone")
    if config.split_mentions:
        if not isinstance(ranker, Linker):
            raise ConfigError("split_mentions: expected a linker, found a search of names alone")
        parts = ranker.split([query.mention for query in queries])
        queries = [replace(q, parts=of) for q, of in zip(queries, parts, strict=True)]
    ids = StoreIds(base)
    name_ranker = ranker if hasattr(ranker, "rank") else NameRanker(ranker, base)
    return run_queries(name_ranker, resolve_gold(queries, ids), ids.own, scorer, config, progress)


def run_queries(
    ranker: Ranker,
    resolved: Resolved,
    own_ids: OwnIds,
    scorer: str = "lenient",
    config: EvaluationConfig | None = None,
    progress: Progress | None = None,
) -> LinkingResult:
    """Evaluate on resolved queries, whose gold ids are spelled as the store's."""
    check_scorer(scorer)
    config, progress = config or EvaluationConfig(), progress or Progress(enabled=False)
    queries = resolved.queries
    if not queries:
        raise ConfigError("queries: expected at least one, found none")
    depth = max(config.ks)
    n_candidates = depth * (NAMES_PER_CONCEPT if scorer == "strict" else 1)
    batches, rows = [], []
    progress.start("linking")
    for batch in _batches(queries, config.batch):
        answers = ranker.rank(batch, n_candidates)
        batch_judgements = judge(
            batch, answers, own_ids, scorer=scorer, depth=depth, nil_rule=config.nil_rule
        )
        batches.append(batch_judgements)
        rows += _rows(batch, answers, batch_judgements)
        progress.advance(len(batch), len(rows) / len(queries))
    progress.finish()
    judgements = Judgements.join(batches, _documents(queries))
    metrics = _metrics(judgements, sorted(set(config.ks)))
    values_by_name = {str(metric): metric(judgements) for metric in metrics}
    intervals = _intervals(metrics, judgements, config)
    return LinkingResult(scorer, values_by_name, intervals, judgements, tuple(rows), resolved)


def _batches(queries: Sequence[LinkQuery], size: int) -> Iterator[Sequence[LinkQuery]]:
    """Batch queries, with all queries of a document together: one may explain another."""
    start = 0
    while start < len(queries):
        stop = min(start + size, len(queries))
        document = queries[stop - 1].document
        while document and stop < len(queries) and queries[stop].document == document:
            stop += 1
        yield queries[start:stop]
        start = stop


def _documents(queries: Sequence[LinkQuery]) -> tuple[str, ...]:
    """Return the document of each query; a query without one is its own document."""
    return tuple(query.document or f"query {n}" for n, query in enumerate(queries))


def _metrics(judgements: Judgements, ks: Sequence[int]) -> list[Metric]:
    names = [f"acc@{k}" for k in ks] + [f"recall@{k}" for k in ks] + ["mrr"]
    if judgements.nil.any():
        names += ["nil_precision", "nil_recall", "nil_f1"]
    probability, _ = concept_answers(judgements)
    if len(probability) and not np.isnan(probability).any():
        names += ["ece", "ece_mass", "brier"]
    return [Metric.parse(name) for name in names]


def _intervals(
    metrics: Sequence[Metric], judgements: Judgements, config: EvaluationConfig
) -> dict[str, Interval]:
    intervals = {}
    for metric in metrics:
        values = metric.values(judgements)
        if values is not None:
            intervals[str(metric)] = bootstrap_interval(
                values,
                judgements.documents,
                n_resamples=config.n_resamples,
                level=config.level,
                seed=config.seed,
            )
    return intervals


def _rows(
    queries: Sequence[LinkQuery], answers: Sequence[Answers], judgements: Judgements
) -> list[QueryRow]:
    rows = []
    for index, query in enumerate(queries):
        parts = answers[index] if index < len(answers) else ()
        possible = np.flatnonzero(judgements.right[index])
        rows.append(
            QueryRow(
                query,
                tuple(tuple(ranked[:MAX_ANSWERS]) for ranked in parts),
                float(judgements.right[index, 0]),
                int(possible[0]) + 1 if len(possible) else None,
                bool(judgements.answered_nil[index]),
            )
        )
    return rows


def nil_as_linked(linker: Linker, config: EvaluationConfig | None = None) -> EvaluationConfig:
    """Return a configuration with the linker's own NIL threshold.

    It is the threshold the linker was opened with, else that of its calibration; a linker without
    either uses the score threshold of its ranker, if there is one.
    """
    config = config or EvaluationConfig()
    if linker.threshold is not None:
        return replace(config, nil_below=linker.threshold, nil_by_score=False)
    nil_below = getattr(linker.ranker, "nil_below", None)
    if linker.calibration is None and nil_below is not None and isfinite(nil_below):
        return replace(config, nil_below=float(nil_below), nil_by_score=True)
    return replace(config, nil_below=None, nil_by_score=False)


def evaluate(
    linker: Linker,
    gold: str | Path | Sequence[LinkQuery],
    form: str = "",
    *,
    scorer: str = "lenient",
    config: EvaluationConfig | None = None,
    progress: Progress | None = None,
) -> LinkingResult:
    """Evaluate a linker on a gold standard: a file of the format ``form``, or queries.

    >>> result = evaluate(Linker.open("KB"), "test.concept", "biosyn")  # doctest: +SKIP
    >>> result["acc@1"]  # doctest: +SKIP
    0.871
    """
    if isinstance(gold, str | Path):
        gold = read_gold(gold, form).queries
    return evaluate_linking(linker, linker.kb, gold, scorer, config, progress)


@dataclass(frozen=True, slots=True)
class GoldQueries:
    """The queries of gold files, the rows left out of each file, and the unknown gold ids."""

    queries: list[LinkQuery]
    rejected: Mapping[str, Mapping[str, int]]
    unknown: Collection[str]

    @property
    def n_without_text(self) -> int:
        """Number of queries whose text is not known."""
        return sum(not query.context for query in self.queries)


def read_queries(
    kb: KnowledgeBase,
    paths: Sequence[str],
    form: str,
    types: tuple[str, ...] = (),
    texts: TextIndex | None = None,
) -> GoldQueries:
    """Read gold files of one format as one, their ids spelled as in the knowledge base."""
    if paths and not form:
        raise ConfigError("format: name the format of the gold standards")
    config = GoldConfig(types=types, keep_nil=True)
    queries: list[LinkQuery] = []
    rejected: dict[str, Mapping[str, int]] = {}
    for path in paths:
        gold = read_gold(path, form, config, texts)
        rejected[path] = gold.log.rejected.counts
        queries += gold.queries
    resolved = resolve_gold(queries, StoreIds(kb))
    return GoldQueries(list(resolved.queries), rejected, resolved.unknown)
