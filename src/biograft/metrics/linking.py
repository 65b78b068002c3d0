"""Linking metrics: acc@k, recall@k, MRR and NIL metrics, by the lenient or the strict rule.

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
value is the expected one: of two tied concepts, one of them right, each counts half.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

from biograft.errors import ConfigError
from biograft.metrics.metric import Flags, Judgements, Measure, Values
from biograft.metrics.precision_recall import Counts

Ids = frozenset[str]
SCORERS = ("lenient", "strict")
MARKS = "|+"
"""Separators of composite mentions and ids in benchmark files."""


class RankedAnswer(NamedTuple):
    """A ranked name or concept: its concept, all ids of that, its score."""

    concept: str
    ids: Ids
    score: float


def split_composite(text: str) -> tuple[str, ...]:
    """Split a mention or id set as the benchmarks do: at ``+`` and ``|``; whitespace stays."""
    return tuple(text.replace("+", "|").split("|"))


def check_scorer(scorer: str) -> str:
    """Refuse a scorer that does not exist."""
    if scorer not in SCORERS:
        raise ConfigError(f"scorer: expected one of {', '.join(SCORERS)}, found {scorer!r}")
    return scorer


# ---- lenient


def lenient(
    parts: Sequence[Sequence[Collection[str]]], gold: Collection[str], depth: int
) -> tuple[Values, Values]:
    """Judge a query by the lenient rule; ``parts`` hold the id set of each ranked name.

    Return ``right`` and ``recall`` for k = 1 .. depth.
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


class _Tied(NamedTuple):
    """Concepts with equal scores: for each the set of needed groups it answers."""

    groups: list[frozenset[int]]


def strict(
    parts: Sequence[Sequence[RankedAnswer]], needed: Sequence[Ids], depth: int
) -> tuple[Values, Values]:
    """Judge a query by the strict rule; ``parts`` hold the ranked answers, best first.

    Return ``right`` and ``recall`` for k = 1 .. depth.
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
    return right, recall


def _tie_groups(answers: Sequence[RankedAnswer], needed: Sequence[Ids]) -> list[_Tied]:
    """Reduce the answers of a part to distinct concepts, grouped by score."""
    levels: dict[float, list[frozenset[int]]] = {}
    concepts: set[str] = set()
    for answer in sorted(answers, key=lambda answer: -answer.score):
        if answer.concept not in concepts:
            concepts.add(answer.concept)
            groups = frozenset(g for g, ids in enumerate(needed) if not ids.isdisjoint(answer.ids))
            levels.setdefault(answer.score, []).append(groups)
    return [_Tied(groups) for groups in levels.values()]


class _TopK(NamedTuple):
    """The first k concepts of a part: some certain, some sampled from a tie."""

    certain: frozenset[int]  # groups that are answered in any case
    tied: list[frozenset[int]]  # the concepts of the tie at rank k
    n_random: int

    @classmethod
    def at(cls, levels: Sequence[_Tied], k: int) -> _TopK:
        certain: frozenset[int] = frozenset()
        left = k
        for level in levels:
            if len(level.groups) > left:
                return cls(certain, level.groups, left)
            certain = certain.union(*level.groups)
            left -= len(level.groups)
        return cls(certain, [], 0)

    def chance_within(self, allowed: frozenset[int]) -> float:
        """Return the probability that no group outside ``allowed`` is answered."""
        if not self.certain <= allowed:
            return 0.0
        n_within = sum(groups <= allowed for groups in self.tied)
        return comb(n_within, self.n_random) / comb(len(self.tied), self.n_random)

    def possible(self) -> frozenset[int]:
        """Return the groups that may be answered."""
        return self.certain.union(*self.tied) if self.n_random else self.certain


def _chance_all(tops: Sequence[_TopK], n_groups: int) -> float:
    """Return the probability that every part answers a group and every group is answered.

    Parts are independent, so the probability that all parts answer something within a set of groups
    is a product; inclusion-exclusion over the sets gives the result.
    """
    everything = frozenset(range(n_groups))
    if frozenset().union(*(top.possible() for top in tops)) != everything:
        return 0.0
    unmatched = [top.chance_within(frozenset()) for top in tops]
    chance = 0.0
    for size in range(1, n_groups + 1):
        for groups in combinations(range(n_groups), size):
            within = 1.0
            for top, none in zip(tops, unmatched, strict=True):
                within *= top.chance_within(frozenset(groups)) - none
            chance += (-1) ** (n_groups - size) * within
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


def _right_at(judgements: Judgements, cutoff: int) -> Values:
    return judgements.right[:, cutoff - 1]


def _recall_at(judgements: Judgements, cutoff: int) -> Values:
    return judgements.recall[:, cutoff - 1]


def _reciprocal_rank(judgements: Judgements, _cutoff: int) -> Values:
    """Return the expected 1 / rank of the first right answer; 0 if there is none."""
    gained = np.diff(judgements.right, axis=1, prepend=0.0)
    ranks: Values = gained @ (1.0 / np.arange(1, judgements.depth + 1))
    return ranks


ACCURACY = Measure(of_each=_right_at, has_cutoff=True)
RECALL = Measure(of_each=_recall_at, has_cutoff=True)
RECIPROCAL_RANK = Measure(of_each=_reciprocal_rank)


def nil_counts(gold: Flags, answered: Flags) -> Counts:
    """Count right, wrong and missed NIL answers."""
    return Counts(
        right=int((gold & answered).sum()),
        wrong=int((~gold & answered).sum()),
        missed=int((gold & ~answered).sum()),
    )


def _counts(judgements: Judgements) -> Counts:
    return nil_counts(judgements.nil, judgements.answered_nil)


NIL_PRECISION = Measure(of_all=lambda judgements, _: _counts(judgements).precision)
NIL_RECALL = Measure(of_all=lambda judgements, _: _counts(judgements).recall)
NIL_F1 = Measure(of_all=lambda judgements, _: _counts(judgements).f1)
