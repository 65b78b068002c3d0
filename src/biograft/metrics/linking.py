"""Linking metrics: acc@k, recall@k, MRR, NIL and calibration metrics, computed from judgements.

Queries are judged by the lenient or the strict rule.

Both rules give, for k = 1, 2, ... answers, the probability that a query is right and its recall. A
query without answers is wrong at every k and stays in the mean.

**Lenient** (the rule of the papers). ``+`` in mention and gold counts as ``|``; a mention is
split at ``|`` into parts (whitespace stays), each ranked separately over *names*. A part is right
at k if one of its first k names has an id set that overlaps the *whole* gold set; the query is
right at k if all its parts are. One concept may fill all k ranks, and a part may be right by the
gold id of another part.

**Strict** (concept level). The ranked names of a part are reduced to distinct concepts, each with
its best score. The gold of a query is a list of needed groups, one for each gold concept; a group
holds equivalent ids. A query is right at k if each of its parts has an answer of some group among
its first k concepts *and* each group is answered by some part. Ties are broken at random, and the
value is the expected one: of two tied concepts, one of them right, each counts half (where more
than 10 gold concepts depend on ties, the mean of 1,000 random orders).

**Calibration**. The expected calibration error (ECE) bins the answers by probability and averages
the difference of accuracy and mean probability over the bins, weighted by size. Every predicted
concept counts, with its probability; where the gold is NIL it is wrong. NIL answers have no
probability and are left out; precision and recall of NIL cover them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import comb
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from biograft.arrays import Flags, Floats
from biograft.errors import ConfigError, nearest
from biograft.kb.names import whole_number
from biograft.metrics.precision_recall import Counts
from biograft.registry import Registry

Values = Floats


@dataclass(frozen=True, slots=True)
class Judgements:
    """Judged answers, a row for each query, answered or not.

    ``right[i, k-1]`` is the probability that query ``i`` is right when ``k`` answers count: 0 or 1,
    or between them for tied scores. ``recall[i, k-1]`` is the recall of the query then, a fraction
    where a mention has several concepts.
    """

    right: Values  # (queries, depth)
    """Probability that the query is right within each cut-off, (queries, k)."""
    recall: Values  # (queries, depth)
    """Recall of the query within each cut-off, (queries, k)."""
    nil: Flags  # (queries,): the gold answer is that no concept fits
    """Whether the gold standard has no concept for the query."""
    answered_nil: Flags  # (queries,)
    """Whether the answer was that no concept fits."""
    probability: Values  # (queries,): of the first answer; nan if it has none, 0 without answer
    """Probability of the first answer; NaN without one."""
    documents: tuple[str, ...]
    """The document of each query; a bootstrap resamples documents."""

    def __len__(self) -> int:
        return len(self.right)

    @property
    def depth(self) -> int:
        """Number of ranks that were judged."""
        return int(self.right.shape[1])

    def take(self, rows: npt.NDArray[np.intp] | Flags) -> Judgements:
        """Return the judgements of some queries.

        Args:
            rows: Indices of the queries, or a flag for each query.
        """
        return Judgements(
            self.right[rows],
            self.recall[rows],
            self.nil[rows],
            self.answered_nil[rows],
            self.probability[rows],
            tuple(np.array(self.documents)[rows].tolist()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Computation of a metric: from each query, then averaged, or from all at once.

    Both functions take the judgements and the cut-off (0 where the metric has none).
    """

    of_each: Callable[[Judgements, int], Values] | None = None
    """Function that gives the value of each query; None for a metric of all queries."""
    of_all: Callable[[Judgements, int], float] | None = None
    """Function that gives the value of all queries together; None for a mean."""
    has_cutoff: bool = False
    """Whether the name of the metric has a cut-off, as in ``acc@5``."""


METRICS: Registry[Measure] = Registry(
    "metric",
    {
        "acc": ("linking:ACCURACY", "fraction of queries right among k answers"),
        "recall": ("linking:RECALL", "fraction of gold concepts among k answers"),
        "mrr": ("linking:RECIPROCAL_RANK", "mean of 1 / rank of the right answer"),
        "nil_precision": ("linking:NIL_PRECISION", "fraction of NIL answers that are right"),
        "nil_recall": ("linking:NIL_RECALL", "fraction of NIL queries answered NIL"),
        "nil_f1": ("linking:NIL_F1", "harmonic mean of NIL precision and recall"),
        "ece": ("linking:ECE", "calibration error, 10 bins of equal width"),
        "ece_mass": ("linking:ECE_MASS", "the same, bins of equal size"),
        "brier": ("linking:BRIER", "mean squared error of the probability"),
    },
    group="biograft.metrics",
    home="biograft.metrics",
)


@dataclass(frozen=True, slots=True, order=True)
class Metric:
    """A metric of the registry, with its cut-off where it has one."""

    name: str
    """Name without the cut-off, as ``acc``."""
    cutoff: int = 0
    """Number of answers that count; 0 where the metric has none."""

    @classmethod
    def parse(cls, text: str) -> Metric:
        """Parse the text form of a metric.

        Args:
            text: Such as ``acc@5`` or ``mrr``.
        """
        name, at, cutoff = text.strip().partition("@")
        if name not in METRICS:
            raise ConfigError(f"no metric is called {name!r}; {nearest(name, METRICS)}")
        has_cutoff = METRICS.load(name).has_cutoff
        if has_cutoff != bool(at):
            form = f"{name}@k" if has_cutoff else name
            raise ConfigError(f"metric {text!r}: expected the form {form}")
        number = whole_number(cutoff)
        if at and not number:
            raise ConfigError(f"metric {text!r}: expected a number from 1 after '@'")
        return cls(name, number or 0)

    def __str__(self) -> str:
        return f"{self.name}@{self.cutoff}" if self.cutoff else self.name

    def values(self, judgements: Judgements) -> Values | None:
        """Return the value of each query, or None for metrics over all queries together.

        Args:
            judgements: The judged answers.
        """
        measure = METRICS.load(self.name)
        if self.cutoff > judgements.depth:
            raise ConfigError(f"{self}: only {judgements.depth} ranks were judged")
        return measure.of_each(judgements, self.cutoff) if measure.of_each else None

    def __call__(self, judgements: Judgements) -> float:
        """Compute the metric; without any query it is 0."""
        values = self.values(judgements)
        if values is not None:
            return float(values.mean()) if len(values) else 0.0
        compute = METRICS.load(self.name).of_all
        if compute is None or not len(judgements):
            return 0.0
        return compute(judgements, self.cutoff)


# ---- rules

Ids = frozenset[str]
SCORERS = ("lenient", "strict")


class RankedAnswer(NamedTuple):
    """A ranked name or concept: its concept, all ids of that, its score."""

    concept: str
    """Id of the concept."""
    ids: Ids
    """All ids of the concept, any of which the gold standard may use."""
    score: float
    """Score; equal scores are a tie."""


def split_composite(text: str) -> tuple[str, ...]:
    """Split a mention or id set as the benchmarks do: at ``+`` and ``|``; whitespace stays.

    Args:
        text: Mention or id set.
    """
    return tuple(text.replace("+", "|").split("|"))


def check_scorer(scorer: str) -> str:
    """Refuse a scorer that does not exist.

    Args:
        scorer: Name of a scorer.
    """
    if scorer not in SCORERS:
        raise ConfigError(f"scorer: expected one of {', '.join(SCORERS)}, found {scorer!r}")
    return scorer


# ---- lenient


def lenient(
    parts: Sequence[Sequence[Collection[str]]], gold: Collection[str], depth: int
) -> tuple[Values, Values]:
    """Judge a query by the lenient rule; ``parts`` hold the id set of each ranked name.

    Return ``right`` and ``recall`` for k = 1 .. depth.

    Args:
        parts: Id set of each ranked name, for each part of the mention.
        gold: The gold ids.
        depth: Number of ranks to judge.
    """
    gold_ids = set(gold)
    correct_by_part = np.zeros((max(len(parts), 1), depth))
    for part, names in enumerate(parts):
        for rank, ids in enumerate(names[:depth]):
            if not gold_ids.isdisjoint(ids):
                correct_by_part[part, rank:] = 1.0
                break
    return correct_by_part.min(axis=0), correct_by_part.mean(axis=0)


# ---- strict

_COUNTED, _DRAWN = 10, 1000
"""Gold concepts in doubt whose sets are all counted, and the random orders drawn of more."""
Tie: TypeAlias = list[frozenset[int]]
"""Concepts with equal scores: for each the needed groups that it answers."""


def strict(
    parts: Sequence[Sequence[RankedAnswer]], needed: Sequence[Ids], depth: int
) -> tuple[Values, Values]:
    """Judge a query by the strict rule; ``parts`` hold the ranked answers, best first.

    Return ``right`` and ``recall`` for k = 1 .. depth.

    Args:
        parts: Ranked answers, best first, for each part of the mention.
        needed: Equivalent ids of each gold concept.
        depth: Number of ranks to judge.
    """
    right, recall = np.zeros(depth), np.zeros(depth)
    if not parts or not needed:
        return right, recall
    tied = [_tie_groups(answers, needed) for answers in parts]
    for k in range(1, depth + 1):
        tops = [_TopK.at(levels, k) for levels in tied]
        right[k - 1] = _chance_all(tops, len(needed))
        recall[k - 1] = _expected_recall(tops, len(needed))
        if right[k - 1] == recall[k - 1] == 1.0:  # more answers change nothing
            right[k:] = recall[k:] = 1.0
            break
    return np.maximum.accumulate(right), recall  # of estimates, too, no answer makes it less


def _tie_groups(answers: Sequence[RankedAnswer], needed: Sequence[Ids]) -> list[Tie]:
    """Reduce the answers of a part to distinct concepts, grouped by score.

    A concept is represented by the set of the needed groups that it answers.
    """
    levels: dict[float, list[frozenset[int]]] = {}
    concepts: set[str] = set()
    for answer in sorted(answers, key=lambda answer: -answer.score):
        if answer.concept not in concepts:
            concepts.add(answer.concept)
            groups = frozenset(g for g, ids in enumerate(needed) if not ids.isdisjoint(answer.ids))
            levels.setdefault(answer.score, []).append(groups)
    return list(levels.values())


class _TopK(NamedTuple):
    """The first k concepts of a part: some certain, some sampled from a tie."""

    certain: frozenset[int]
    """Groups that are answered in any case."""
    tied: Tie
    """The groups of each concept of the tie at rank k."""
    n_random: int

    @classmethod
    def at(cls, levels: Sequence[Tie], k: int) -> _TopK:
        certain: frozenset[int] = frozenset()
        left = k
        for level in levels:
            if len(level) > left:
                return cls(certain, level, left)
            certain = certain.union(*level)
            left -= len(level)
        return cls(certain, [], 0)

    def chance_within(self, allowed: frozenset[int]) -> float:
        """Return the probability that no group outside ``allowed`` is answered."""
        if not self.certain <= allowed:
            return 0.0
        n_within = sum(groups <= allowed for groups in self.tied)
        return comb(n_within, self.n_random) / comb(len(self.tied), self.n_random)

    def collapsed(self, of: frozenset[int]) -> _TopK:
        """Return the same with one group (-1) for all groups that are not in ``of``."""
        certain = frozenset(g if g in of else -1 for g in self.certain)
        tied = [frozenset(g if g in of else -1 for g in groups) for groups in self.tied]
        return _TopK(certain, tied if self.n_random else [], self.n_random)

    def drawn(self, rng: random.Random) -> frozenset[int]:
        """Return the groups that are answered in one random order of the tie."""
        return self.certain.union(*rng.sample(self.tied, self.n_random))


def _chance_all(tops: Sequence[_TopK], n_groups: int) -> float:
    """Return the probability that every part answers a group and every group is answered.

    Only groups that no part answers in any case are in doubt. Parts are independent, so the
    probability that all parts answer something within a set of groups is a product;
    inclusion-exclusion over the sets in doubt gives the result. These are exponentially many, and
    no exact way is quicker (with one answer a part it is the permanent of a matrix), so that of
    more than :data:`_COUNTED` groups it is estimated from random orders.
    """
    doubtful = frozenset(range(n_groups)).difference(*(top.certain for top in tops))
    tops = [top.collapsed(doubtful) for top in tops]
    answered = [max((len(g - {-1}) for g in top.tied), default=0) * top.n_random for top in tops]
    if sum(answered) < len(doubtful) or not doubtful <= frozenset().union(
        *(groups for top in tops for groups in top.tied)
    ):
        return 0.0
    if len(doubtful) > _COUNTED:
        rng, n_right = random.Random(0), 0
        for _ in range(_DRAWN):
            drawn = [top.drawn(rng) for top in tops]
            n_right += all(drawn) and doubtful <= frozenset().union(*drawn)
        return n_right / _DRAWN
    unmatched = [top.chance_within(frozenset()) for top in tops]
    chance = 0.0
    for size in range(len(doubtful) + 1):
        for groups in combinations(doubtful, size):
            within, allowed = 1.0, frozenset((*groups, -1))
            for top, none in zip(tops, unmatched, strict=True):
                within *= top.chance_within(allowed) - none
            chance += (-1) ** (len(doubtful) - size) * within
    return min(max(chance, 0.0), 1.0)


def _expected_recall(tops: Sequence[_TopK], n_groups: int) -> float:
    """Return the expected fraction of the groups that some part answers."""
    everything = frozenset(range(n_groups))
    missed = 0.0
    for group in everything:
        none = 1.0
        for top in tops:
            none *= top.chance_within(everything - {group})
        missed += none
    return 1.0 - missed / n_groups


# ---- metrics


def _reciprocal_rank(judgements: Judgements, _cutoff: int) -> Values:
    """Return the expected 1 / rank of the first right answer; 0 if there is none."""
    gained = np.diff(judgements.right, axis=1, prepend=0.0)
    ranks: Values = gained @ (1.0 / np.arange(1, judgements.depth + 1))
    return ranks


ACCURACY = Measure(of_each=lambda judged, cutoff: judged.right[:, cutoff - 1], has_cutoff=True)
RECALL = Measure(of_each=lambda judged, cutoff: judged.recall[:, cutoff - 1], has_cutoff=True)
RECIPROCAL_RANK = Measure(of_each=_reciprocal_rank)


def nil_counts(gold: Flags, answered: Flags) -> Counts:
    """Count right, wrong and missed NIL answers.

    Args:
        gold: Whether the gold of each query is NIL.
        answered: Whether the answer is.
    """
    return Counts(
        right=int((gold & answered).sum()),
        wrong=int((~gold & answered).sum()),
        missed=int((gold & ~answered).sum()),
    )


def _nil_counts(judged: Judgements) -> Counts:
    return nil_counts(judged.nil, judged.answered_nil)


NIL_PRECISION = Measure(of_all=lambda judged, _: _nil_counts(judged).precision)
NIL_RECALL = Measure(of_all=lambda judged, _: _nil_counts(judged).recall)
NIL_F1 = Measure(of_all=lambda judged, _: _nil_counts(judged).f1)


# ---- calibration

N_BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """A bin of a reliability table; ``low`` and ``high`` bound its probabilities."""

    low: float
    high: float
    n: int
    """Number of answers in the bin."""
    probability: float
    """Mean probability of its answers."""
    accuracy: float
    """Fraction of them that are right."""


def reliability(
    probability: Values, right: Values, n_bins: int = N_BINS, *, by_mass: bool = False
) -> list[Bin]:
    """Tabulate accuracy by probability, in bins of equal width or (``by_mass``) of equal size.

    Empty bins are left out. Equal probabilities share a bin, so bins of equal size may be uneven or
    fewer. A probability on the edge of two bins of equal width belongs to the upper one.

    Args:
        probability: Probability of each answer.
        right: Whether it is right, or the probability of that.
        n_bins: Number of bins.
        by_mass: Make bins of equal size.
    """
    _check(probability, right, n_bins)
    edges = np.arange(n_bins + 1) / n_bins
    if by_mass and len(probability):
        cuts = np.arange(1, n_bins) * len(probability) // n_bins
        edges = np.unique(np.concatenate([[0.0], np.sort(probability)[cuts], [1.0]]))
    indices = np.clip(np.searchsorted(edges, probability, side="right") - 1, 0, len(edges) - 2)
    bins = []
    for index, (low, high) in enumerate(pairwise(edges.tolist())):
        mask = indices == index
        if n := int(mask.sum()):
            mean, accuracy = float(probability[mask].mean()), float(right[mask].mean())
            bins.append(Bin(low, high, n, mean, accuracy))
    return bins


def calibration_error(
    probability: Values, right: Values, n_bins: int = N_BINS, *, by_mass: bool = False
) -> float:
    """Compute the expected calibration error; 0 without answers.

    Args:
        probability: Probability of each answer.
        right: Whether it is right, or the probability of that.
        n_bins: Number of bins.
        by_mass: Make bins of equal size.
    """
    bins = reliability(probability, right, n_bins, by_mass=by_mass)
    total = sum(b.n for b in bins)
    return sum(b.n * abs(b.accuracy - b.probability) for b in bins) / total if total else 0.0


def brier_score(probability: Values, right: Values) -> float:
    """Compute the mean squared difference of probability and outcome; 0 without answers.

    An outcome between 0 and 1 (tied scores) is a probability, and the result its expected value.

    Args:
        probability: Probability of each answer.
        right: Whether it is right, or the probability of that.
    """
    _check(probability, right, 1)
    if not len(right):
        return 0.0
    return float((right * (1 - probability) ** 2 + (1 - right) * probability**2).mean())


def _check(probability: Values, right: Values, n_bins: int) -> None:
    if n_bins < 1:
        raise ConfigError(f"bins: expected at least 1, found {n_bins}")
    if np.isnan(probability).any():
        raise ConfigError(
            "some answers carry no probability; calibrate the linker, or leave ece and brier out"
        )
    if len(probability) != len(right):
        raise ConfigError(f"{len(probability)} probabilities for {len(right)} answers")
    if not all(((values >= 0) & (values <= 1)).all() for values in (probability, right)):
        raise ConfigError("probabilities and outcomes: expected numbers from 0 to 1")


def concept_answers(judgements: Judgements) -> tuple[Values, Values]:
    """Return the probability of each answer that is not NIL, and whether it is right.

    Args:
        judgements: The judged answers.
    """
    mask = ~judgements.answered_nil
    return judgements.probability[mask], judgements.right[mask, 0]


ECE = Measure(of_all=lambda judged, _: calibration_error(*concept_answers(judged)))
ECE_MASS = Measure(
    of_all=lambda judged, _: calibration_error(*concept_answers(judged), by_mass=True)
)
BRIER = Measure(of_all=lambda judged, _: brier_score(*concept_answers(judged)))
