"""Linking evaluation: rank all queries, judge the answers, compute metrics with intervals.

Gold ids are compared in their canonical spelling. An unknown gold id is tried without its prefix,
and one without prefix with each prefix of the store; the latter counts only if exactly one prefix
matches, since a bare number is ambiguous.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from biograft.config import check_choice, from_mapping
from biograft.display import Shown
from biograft.errors import ConfigError
from biograft.evaluation.gold import (
    Gold,
    GoldConfig,
    LinkQuery,
    TextIndex,
    empty_gold_error,
    read_gold,
)
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_fingerprint
from biograft.kb.records import IdKind
from biograft.kb.vocabularies import canonical_id
from biograft.linking.calibration import Calibration, choose_threshold, fit_calibration
from biograft.linking.candidates import Candidate, Evidence, NameHits
from biograft.linking.linker import Linker
from biograft.linking.queries import check_texts, overlapping
from biograft.metrics.linking import (
    Judgements,
    Metric,
    RankedAnswer,
    Values,
    calibration_error,
    check_scorer,
    concept_answers,
    lenient,
    strict,
)
from biograft.metrics.precision_recall import percent
from biograft.metrics.significance import LEVEL, N_RESAMPLES, Interval, bootstrap_interval
from biograft.progress import Progress
from biograft.text.tasks.rows import is_files

CUTOFFS = (1, 5, 10, 30)
MAX_ANSWERS = 5
"""Candidates of each part that a result keeps."""
NAMES_PER_CONCEPT = 4
"""Names to retrieve per rank under the strict rule, which counts concepts."""


# ---- gold ids


class StoreIds:
    """The ids of a store's concepts.

    Args:
        base: The knowledge base.
    """

    def __init__(self, base: KnowledgeBase) -> None:
        self._base = base
        self._own: dict[str, frozenset[str]] = {}

    def own(self, concept: str) -> frozenset[str]:
        """Return all own ids of a concept (primary and alternate) in canonical spelling.

        Args:
            concept: Its primary id.
        """
        if concept not in self._own:
            ids = [concept]
            row = self._base.find_row(concept)
            if row is not None:
                entry = self._base.concept_at(row)
                ids += [i.id for i in entry.ids if i.kind == IdKind.ALTERNATE]
            self._own[concept] = frozenset(map(canonical_id, ids))
        return self._own[concept]

    def known(self, gold: str) -> str | None:
        """Return a gold id as the store spells it, or None if it is unknown.

        Args:
            gold: The gold id, with or without a prefix.
        """
        canonical = canonical_id(gold)
        if canonical in self._base:
            return canonical
        _, colon, bare = canonical.rpartition(":")
        if colon:
            return bare if bare in self._base else None
        spelled = [f"{prefix}:{canonical}" for prefix in self._prefixes]
        matching = [i for i in spelled if i in self._base]
        return canonical_id(matching[0]) if len(matching) == 1 else None

    def meant(self, gold: str) -> str:
        """Return the primary id of the only concept with a gold id; else the gold id.

        Args:
            gold: The gold id, with or without a prefix.
        """
        known = self.known(gold)
        concepts = [] if known is None else self._base.by_id(known)
        return canonical_id(concepts[0].id if len(concepts) == 1 else known or gold)

    @cached_property
    def _prefixes(self) -> list[str]:
        """The prefixes of the store's ids that canonical ids keep."""
        ids = (i for table in ("concepts", "ids") for i in self._base.texts(table, "id"))
        prefixes = {i.partition(":")[0] for i in ids if ":" in i}
        return sorted({canonical_id(f"{p}:").removesuffix(":") for p in prefixes} - {""})

    def named(self, name: str) -> frozenset[str]:
        """Return the concepts with a name: exact matches if there are any, else normalised ones.

        Args:
            name: The name.
        """
        matches = self._base.find(name)
        exact = [match for match in matches if match.how == "exact"]
        return frozenset(canonical_id(match.concept) for match in exact or matches)


@dataclass(frozen=True, slots=True)
class Resolved:
    """Queries with gold ids as the store spells them, and the unknown ids."""

    queries: tuple[LinkQuery, ...]
    """Queries whose gold ids are in the knowledge base."""
    unknown: frozenset[str]
    """Gold ids (or gold names) that are not in the store; no answer can match them."""
    unreachable: tuple[bool, ...]
    """For each query whether it needs one of them, and cannot be right under the strict rule."""

    @property
    def n_unreachable(self) -> int:
        """Number of queries that need an unknown id."""
        return sum(self.unreachable)


def resolve_gold(queries: Iterable[LinkQuery], ids: StoreIds) -> Resolved:
    """Convert the gold ids of all queries to the store's spelling; gold names become ids.

    Args:
        queries: The queries.
        ids: The ids of the store.
    """
    resolved: list[LinkQuery] = []
    unknown: set[str] = set()
    unreachable: list[bool] = []
    for query in queries:
        groups: list[frozenset[str]] = []
        missing: set[str] = set()
        for group in query.needed:
            known = {gold: ids.known(gold) for gold in group}
            missing.update(gold for gold, spelling in known.items() if spelling is None)
            groups.append(frozenset(spelling or gold for gold, spelling in known.items()))
        for name in query.gold_names:
            concepts = ids.named(name)
            if not concepts:
                missing.add(name)
            groups.append(concepts or frozenset({name}))
        gold = frozenset().union(*groups)
        resolved.append(replace(query, gold=gold, needed=tuple(groups)))
        unreachable.append(any(group <= missing for group in groups))
        unknown |= missing
    return Resolved(tuple(resolved), frozenset(unknown), tuple(unreachable))


DROPS = {
    "overlapping": "overlapping another mention",
    "unknown-ids": "with an id that the knowledge base does not have",
}
"""Queries that published test sets leave out, with the names of their counts."""


def drop_queries(gold: Gold, base: KnowledgeBase, names: Sequence[str]) -> Gold:
    """Leave out queries as the authors of a paper do; the log of the gold counts them.

    A composite mention is left out if any of its concepts is unknown. A mention that overlaps and
    has an unknown id counts as overlapping.

    Args:
        gold: The gold standard.
        base: The knowledge base that is searched.
        names: Names of ``DROPS``.

    Raises:
        ConfigError: A name is unknown.
        FormatError: No query is left.
    """
    for name in names:
        check_choice("drop", name, tuple(DROPS))
    left: Sequence[LinkQuery] = gold.queries
    for name in (name for name in DROPS if name in names):
        if name == "overlapping":
            flags: Sequence[bool] = overlapping(left)
        else:
            flags = resolve_gold(left, StoreIds(base)).unreachable
        gold.log.filter(DROPS[name], sum(flags))
        left = [query for query, flag in zip(left, flags, strict=True) if not flag]
    if not left:
        raise empty_gold_error("no query is left", gold.log, gold.log.path)
    return replace(gold, queries=tuple(left))


# ---- answers and their judgement

Answers: TypeAlias = Sequence[Sequence[Candidate]]
"""The ranked candidates of each part of a query; NIL if there are none."""
Search: TypeAlias = Callable[[Sequence[str], int], NameHits]


class Ranker(Protocol):
    """Ranks candidates for queries."""

    def rank(self, queries: Sequence[LinkQuery], k: int) -> Sequence[Answers]:
        """Return at most k candidates, best first, for each part of each query.

        Args:
            queries: Queries.
            k: Largest number of candidates.
        """


class NameRanker:
    """A name search as a ranker: a candidate for every name, in the order of the search.

    Candidates are *not* reduced to distinct concepts: the lenient rule counts names, and the strict
    rule groups them itself.

    Args:
        search: Search of names.
        base: Knowledge base of the names.
        name: Name of the ranker in reports.
    """

    def __init__(self, search: Search, base: KnowledgeBase, name: str = "search") -> None:
        self._search, self._base, self._name = search, base, name
        self._concepts: npt.NDArray[np.uint32] = base.numbers("names", "concept")

    def rank(self, queries: Sequence[LinkQuery], k: int) -> list[list[list[Candidate]]]:
        """Search each distinct part once; see ``Ranker.rank``.

        Args:
            queries: Queries.
            k: Largest number of candidates.
        """
        texts = list(dict.fromkeys(part for query in queries for part in query.parts))
        if not texts:
            return [[] for _ in queries]
        hits = self._search(texts, k)
        candidates = {
            text: [
                self._candidate(row, score, rank)
                for rank, (row, score) in enumerate(
                    zip(rows[:k].tolist(), scores[:k].tolist(), strict=True), 1
                )
                if row >= 0
            ]
            for text, rows, scores in zip(texts, hits.rows, hits.scores, strict=True)
        }
        return [[candidates[part] for part in query.parts] for query in queries]

    def _candidate(self, row: int, score: float, rank: int) -> Candidate:
        name, concept = self._base.name(row).text, int(self._concepts[row])
        return Candidate(
            self._base.id_at(concept),
            self._base.name_at(concept),
            name,
            score,
            evidence=(Evidence(self._name, name, rank, score),),
        )


OwnIds = Callable[[str], frozenset[str]]
"""Returns all ids of a concept, spelled as the gold ids."""


def _judge(
    query: LinkQuery, parts: Answers, own_ids: OwnIds, scorer: str, depth: int
) -> tuple[Values, Values]:
    """Return the probability that a query is right for k = 1 .. depth, and its recall.

    The lenient rule counts candidates: names if the ranker returns a candidate for every name, as
    in the papers, and concepts if it returns each concept once.
    """
    if scorer == "lenient":
        sets = [[own_ids(c.concept) for c in ranked[:depth]] for ranked in parts]
        return lenient(sets, query.gold, depth)
    named = [[RankedAnswer(c.concept, own_ids(c.concept), c.score) for c in r] for r in parts]
    return strict(named, query.needed, depth)


def _first_probability(parts: Answers) -> float:
    """Return the joint probability of the first answers; nan if they have none, 0 if missing."""
    firsts = [ranked[0] for ranked in parts if ranked]
    if not firsts or len(firsts) < len(parts):
        return 0.0
    accepted = [c.probability for c in firsts if c.probability is not None]
    return float(np.prod(accepted)) if len(accepted) == len(firsts) else float("nan")


# ---- evaluation


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
    """Number of bootstrap samples for each interval."""
    level: float = LEVEL
    """Confidence level of the intervals, from 0 to 1."""
    seed: int = 0
    """Seed of the bootstrap."""
    batch: int = 512
    """Number of queries that are answered at once; affects speed and memory only."""
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

    def is_nil(self, first: Candidate) -> bool:
        """Return True if a first candidate is below the threshold of NIL.

        Args:
            first: The candidate.
        """
        if self.nil_below is None:
            return False
        probability = None if self.nil_by_score else first.probability
        return (first.score if probability is None else probability) < self.nil_below


@dataclass(frozen=True, slots=True)
class QueryRow:
    """A query with its first answers and their judgement."""

    query: LinkQuery
    """The query with its gold concepts."""
    answers: Answers
    """Answers, best first, with all that the evaluation needs of them."""
    right: float
    """Probability that the first answers are right: 0 or 1, or between them for ties."""
    rank: int | None
    """First k at which the query may be right; None if it never is."""
    answered_nil: bool
    """Whether the scorer answered that no concept fits."""


@dataclass(frozen=True, slots=True, repr=False)
class LinkingResult(Shown):
    """The metrics of a run, as fractions, and every query with its answers."""

    scorer: str
    """Name of the linker or search that answered."""
    metrics: dict[str, float]
    """Values by the name of the metric, as fractions from 0 to 1."""
    intervals: dict[str, Interval]
    """Intervals of metrics that are means; resampled by document, or by query without documents."""
    judgements: Judgements
    """Judged answers as arrays, from which every metric is computed."""
    rows: tuple[QueryRow, ...]
    """Each query with its first answers."""
    resolved: Resolved
    """Queries by the ids of the knowledge base, and the unknown ids."""

    def shown(self) -> dict[str, Any]:
        """Return the metrics, and the number of queries."""
        return {"scorer": self.scorer, "n": self.n, **self.metrics}

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
            **{name: percent(value) for name, value in self.metrics.items()},
            "intervals": {name: interval.to_json() for name, interval in self.intervals.items()},
            "unit": "percent",
            "n_documents": len(set(self.judgements.documents)),
            "n_unknown_gold": len(self.resolved.unknown),
            "n_unreachable": self.resolved.n_unreachable,
        }


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

    Args:
        ranker: The linker, another ranker, or a search for names.
        base: The knowledge base that it searches.
        queries: The mentions with their gold ids, in any spelling.
        scorer: ``lenient`` or ``strict``.
        config: Cut-offs, threshold of NIL and bootstrap.
        progress: Display of the progress; None: none.

    Raises:
        ConfigError: There is no query, or the ranker cannot do what the configuration asks for.
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
    """Evaluate on resolved queries, whose gold ids are spelled as the store's.

    A part is answered NIL if it has no candidate, or if its first one is below the threshold; a
    query is answered NIL if all its parts are. A query answered NIL is right only if its gold is
    NIL. A composite is not right if a needed part was answered NIL; its candidates still count
    for recall.

    Args:
        ranker: The ranker.
        resolved: The queries.
        own_ids: Returns all ids of a concept.
        scorer: ``lenient`` or ``strict``.
        config: Cut-offs, threshold of NIL and bootstrap.
        progress: Display of the progress; None: none.

    Raises:
        ConfigError: There is no query, or no such scorer.
    """
    check_scorer(scorer)
    config, progress = config or EvaluationConfig(), progress or Progress()
    queries = resolved.queries
    if not queries:
        raise ConfigError("queries: expected at least one, found none")
    depth = max(config.ks)
    n_candidates = depth * (NAMES_PER_CONCEPT if scorer == "strict" else 1)
    judged, rows = [], []
    progress.start("linking")
    for batch in _batches(queries, config.batch):
        answers = ranker.rank(batch, n_candidates)
        for index, query in enumerate(batch):
            parts = answers[index] if index < len(answers) else ()
            accepted = [() if ranked and config.is_nil(ranked[0]) else ranked for ranked in parts]
            is_nil = not any(accepted)
            if query.is_nil:
                rightness = recalled = np.full(depth, float(is_nil))
            else:
                rightness, recalled = _judge(query, parts, own_ids, scorer, depth)
                if config.nil_below is not None:
                    rightness, _ = _judge(query, accepted, own_ids, scorer, depth)
            judged.append((rightness, recalled, query.is_nil, is_nil, _first_probability(accepted)))
            possible = np.flatnonzero(rightness)
            rank = int(possible[0]) + 1 if len(possible) else None
            kept = tuple(tuple(ranked[:MAX_ANSWERS]) for ranked in parts)
            rows.append(QueryRow(query, kept, float(rightness[0]), rank, is_nil))
        progress.advance(len(batch), len(rows) / len(queries))
    progress.finish()
    right, recall, nil, answered_nil, probability = map(np.array, zip(*judged, strict=True))
    # a query without a document is its own document
    documents = tuple(query.document or f"query {n}" for n, query in enumerate(queries))
    judgements = Judgements(right, recall, nil, answered_nil, probability, documents)
    metrics = _metrics(judgements, sorted(set(config.ks)))
    intervals = {
        str(metric): bootstrap_interval(
            of_each,
            judgements.documents,
            n_resamples=config.n_resamples,
            level=config.level,
            seed=config.seed,
        )
        for metric in metrics
        if (of_each := metric.values(judgements)) is not None
    }
    scores = {str(metric): metric(judgements) for metric in metrics}
    return LinkingResult(scorer, scores, intervals, judgements, tuple(rows), resolved)


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


def _metrics(judgements: Judgements, ks: Sequence[int]) -> list[Metric]:
    names = [f"acc@{k}" for k in ks] + [f"recall@{k}" for k in ks] + ["mrr"]
    if judgements.nil.any():
        names += ["nil_precision", "nil_recall", "nil_f1"]
    probability, _ = concept_answers(judgements)
    if len(probability) and not np.isnan(probability).any():
        names += ["ece", "ece_mass", "brier"]
    return [Metric.parse(name) for name in names]


def nil_as_linked(linker: Linker, config: EvaluationConfig | None = None) -> EvaluationConfig:
    """Return a configuration with the linker's own NIL threshold.

    It is the threshold the linker was opened with, else that of its calibration; a linker without
    either uses the score threshold of its ranker, if there is one.

    Args:
        linker: The linker.
        config: The configuration to complete; None: the default.
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
    gold: Any,
    form: str = "",
    *,
    scorer: str = "lenient",
    config: EvaluationConfig | Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> LinkingResult:
    """Evaluate a linker on a gold standard.

    Args:
        linker: The linker.
        gold: A file; or rows, of which those without a concept count as NIL: a list of mentions
            with concepts or of documents, a frame of pandas or polars, a ``datasets.Dataset``
            (:func:`to_queries`).
        form: Format of the file.
        scorer: ``lenient`` or ``strict``.
        config: Cut-offs, threshold of NIL and bootstrap; also as a dictionary.
        progress: Display of the progress; None: none.

    >>> result = evaluate(Linker.open("KB"), "test.concept", "biosyn")  # doctest: +SKIP
    >>> result["acc@1"]  # doctest: +SKIP
    0.871
    >>> evaluate(linker, [("sugar disease", "D003920")])["acc@1"]  # doctest: +SKIP
    """
    if isinstance(config, Mapping):
        config = from_mapping(EvaluationConfig, config, "config.")
    keep_nil = GoldConfig(keep_nil=not isinstance(gold, str | Path))
    queries = read_gold(gold, form, keep_nil).queries
    return evaluate_linking(linker, linker.kb, queries, scorer, config, progress)


@dataclass(frozen=True, slots=True)
class GoldQueries:
    """The queries of gold files, the rows left out of each file, and the unknown gold ids."""

    queries: list[LinkQuery]
    """Queries of all files."""
    rejected: Mapping[str, Mapping[str, int]]
    """Number of rows left out, by file and reason."""
    unknown: Collection[str]
    """Gold ids that the knowledge base does not have."""

    @property
    def n_without_text(self) -> int:
        """Number of queries whose text is not known."""
        return sum(not query.context for query in self.queries)


def read_queries(
    kb: KnowledgeBase,
    gold: Any,
    form: str = "",
    types: tuple[str, ...] = (),
    texts: TextIndex | None = None,
) -> GoldQueries:
    """Read gold files of one format as one, or rows, their ids spelled as in the knowledge base.

    Args:
        kb: The knowledge base.
        gold: The files, or rows (:func:`to_queries`).
        form: Format of the files.
        types: Types of mentions to keep; none: all.
        texts: The documents of gold standards that have only offsets.
    """
    are_files = is_files(gold)
    if are_files and gold and not form:
        raise ConfigError("format: name the format of the gold standards")
    config = GoldConfig(types=types, keep_nil=True)
    queries: list[LinkQuery] = []
    rejected: dict[str, Mapping[str, int]] = {}
    for part in gold if are_files else [gold]:
        read = read_gold(part, form, config, texts)
        rejected[str(read.log.path)] = read.log.rejected.counts
        queries += read.queries
    resolved = resolve_gold(queries, StoreIds(kb))
    return GoldQueries(list(resolved.queries), rejected, resolved.unknown)


# ---- calibration

_N_FOLDS = 5


def calibrate_linker(
    linker: Linker,
    queries: Sequence[LinkQuery],
    kb: KnowledgeBase,
    method: str = "isotonic",
    aim: str | None = None,
) -> Calibration:
    """Fit a calibration to a linker's first answers on training or development queries.

    With ``aim`` (``f1``, ``precision>=0.95``) the calibration also carries the threshold of NIL;
    include queries without a concept then (``GoldConfig(keep_nil=True)``). Composite mentions are
    left out: their answers have several scores.

    Args:
        linker: The linker, without a calibration.
        queries: The gold standard.
        kb: The knowledge base of the linker.
        method: ``isotonic`` or ``platt``.
        aim: Criterion of the threshold; None: no threshold.
    """
    if linker.calibration is not None:
        raise ConfigError("calibration: this linker has one; open it without to fit another")
    single = [query for query in queries if len(query.parts) == 1]
    result = evaluate_linking(linker, kb, single, config=EvaluationConfig(ks=(1,), n_resamples=1))
    return calibrate_result(result, linker.score_source, method, aim, store=store_fingerprint(kb))


def calibrate_result(
    result: LinkingResult,
    search: str,
    method: str = "isotonic",
    aim: str | None = None,
    *,
    store: str,
) -> Calibration:
    """Fit a calibration to the answers of an evaluation.

    Args:
        result: The evaluation, without a threshold of NIL.
        search: Source of the scores (``Linker.score_source``).
        method: ``isotonic`` or ``platt``.
        aim: Criterion of the NIL threshold (``f1``, ``precision>=0.95``); None: no threshold.
        store: Fingerprint of the knowledge base that was searched (``store_fingerprint``).

    Raises:
        ConfigError: Answers were counted as NIL, or there are none.
    """
    if any(row.answered_nil and any(row.answers) for row in result.rows):
        raise ConfigError(
            "calibration: answers below a threshold were taken for NIL; evaluate without one "
            "(nil_below) to fit a calibration"
        )
    rows, scores, right = _top_answers(result)
    calibration = fit_calibration(scores, right, method, search=search, store=store)
    if aim is None:
        return calibration
    nil = np.array([row.query.is_nil for row in rows])
    return replace(
        calibration, threshold=choose_threshold(calibration(scores), right > 0, nil, aim)
    )


def calibration_gain(result: LinkingResult, method: str = "isotonic") -> tuple[float, float]:
    """Return the calibration error before and after calibration, cross-validated by document.

    Before are the probabilities of the answers, or their scores clipped to 0 to 1.

    Args:
        result: The evaluation, without a threshold of NIL.
        method: ``isotonic`` or ``platt``.
    """
    rows, scores, right = _top_answers(result)
    probability = np.array([row.answers[0][0].probability for row in rows], np.float64)
    documents = [row.query.document or row.query.mention for row in rows]
    folds = np.array([zlib.crc32(name.encode()) % _N_FOLDS for name in documents])
    before = np.where(np.isnan(probability), np.clip(scores, 0, 1), probability)
    after = before.copy()
    for fold in range(_N_FOLDS):
        held_out = folds == fold
        if held_out.any() and not held_out.all():
            calibration = fit_calibration(scores[~held_out], right[~held_out], method)
            after[held_out] = calibration(scores[held_out])
    return calibration_error(before, right), calibration_error(after, right)


def _top_answers(result: LinkingResult) -> tuple[list[QueryRow], Values, Values]:
    """Return the answered queries that are not composite, their first scores, and what is right."""
    answered = [row for row in result.rows if row.answers and row.answers[0]]
    rows = [row for row in answered if len(row.query.parts) == 1]
    if not rows:
        raise ConfigError("calibration: the linker has no answer to any query")
    scores = np.array([row.answers[0][0].score for row in rows], np.float64)
    return rows, scores, np.array([row.right for row in rows], np.float64)
