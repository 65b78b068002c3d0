"""When an answer to a linking query is right: the published lenient rule, and a strict one.

Both give, for k = 1, 2, ... answers, the chance that a query is right and the share of it that
is. A query whose answers are missing is wrong at every k; it stays in the mean.

**Lenient** (the rule of the papers). ``+`` in mention and gold counts as ``|``; a mention is
split at ``|`` into parts (blanks stay), each ranked alone over *names*. A part is right at k if
one of its first k names has an id set that meets the *whole* gold set; the query is right at k
if all its parts are. One concept may fill all k places, and a part may be right by the gold id
of another part.

**Strict** (concept level). The ranked names of a part become distinct concepts in order, each
with its best score. The gold of a query is a list of needed groups, one for each concept that
is meant; a group holds the ids that are equally good. A query is right at k if each of its parts
has an answer of some group among its first k concepts *and* each group is answered by some part.
Concepts with equal scores have no order: their order counts as drawn at random, and the value
is the chance of being right, so that two tied concepts, one of them right, count half.
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
"""What parts the mentions and the ids of a composite in benchmark files."""


class Answer(NamedTuple):
    """One ranked name or concept: what it is, all ids it goes by, its score."""

    concept: str
    ids: Ids
    score: float


def benchmark_parts(text: str) -> tuple[str, ...]:
    """Split a mention or a cell of ids as the benchmarks do: at ``+`` and ``|``, blanks stay."""
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

    Gives ``right`` and ``found`` for k = 1 .. depth.
    """
    meant = set(gold)
    by_part = np.zeros((max(len(parts), 1), depth))
    for part, names in enumerate(parts):
        for rank, ids in enumerate(names[:depth]):
            if not meant.isdisjoint(ids):
                by_part[part, rank:] = 1.0
                break
    return by_part.min(axis=0), by_part.mean(axis=0)


# ---- strict


class _Tied(NamedTuple):
    """Concepts with one score: for each the set of needed groups it answers."""

    groups: list[frozenset[int]]


def strict(
    parts: Sequence[Sequence[Answer]], needed: Sequence[Ids], depth: int
) -> tuple[Values, Values]:
    """Judge a query by the strict rule; ``parts`` hold the ranked answers, best first.

    Gives ``right`` and ``found`` for k = 1 .. depth.
    """
    right, found = np.zeros(depth), np.zeros(depth)
    if not parts or not needed:
        return right, found
    tied = [_tie_groups(answers, needed) for answers in parts]
    for k in range(1, depth + 1):
        draws = [_Draw.at(levels, k) for levels in tied]
        right[k - 1] = _chance_all(draws, len(needed))
        found[k - 1] = _share_answered(draws, len(needed))
        if right[k - 1] == found[k - 1] == 1.0:  # more answers change nothing
            right[k:] = found[k:] = 1.0
            break
    return right, found


def _tie_groups(answers: Sequence[Answer], needed: Sequence[Ids]) -> list[_Tied]:
    """Bring the answers of a part to distinct concepts, gathered by score."""
    levels: dict[float, list[frozenset[int]]] = {}
    seen: set[str] = set()
    for answer in sorted(answers, key=lambda answer: -answer.score):
        if answer.concept not in seen:
            seen.add(answer.concept)
            groups = frozenset(g for g, ids in enumerate(needed) if not ids.isdisjoint(answer.ids))
            levels.setdefault(answer.score, []).append(groups)
    return [_Tied(groups) for groups in levels.values()]


class _Draw(NamedTuple):
    """The first k concepts of a part: some for certain, some drawn from a tie."""

    certain: frozenset[int]  # groups that are answered whatever is drawn
    tied: list[frozenset[int]]  # the concepts of the tie that goes over the k-th place
    n_drawn: int

    @classmethod
    def at(cls, levels: Sequence[_Tied], k: int) -> _Draw:
        certain: frozenset[int] = frozenset()
        left = k
        for level in levels:
            if len(level.groups) > left:
                return cls(certain, level.groups, left)
            certain = certain.union(*level.groups)
            left -= len(level.groups)
        return cls(certain, [], 0)

    def chance_within(self, allowed: frozenset[int]) -> float:
        """How likely it is that no group outside ``allowed`` is answered."""
        if not self.certain <= allowed:
            return 0.0
        n_within = sum(groups <= allowed for groups in self.tied)
        return comb(n_within, self.n_drawn) / comb(len(self.tied), self.n_drawn)

    def possible(self) -> frozenset[int]:
        """Give the groups that may be answered."""
        return self.certain.union(*self.tied) if self.n_drawn else self.certain


def _chance_all(draws: Sequence[_Draw], n_groups: int) -> float:
    """How likely it is that every part answers a group and every group is answered.

    The parts are drawn independently, so that the chance of all parts answering something
    within a set of groups is a product; inclusion and exclusion over the sets gives the rest.
    """
    everything = frozenset(range(n_groups))
    if frozenset().union(*(draw.possible() for draw in draws)) != everything:
        return 0.0
    nothing = [draw.chance_within(frozenset()) for draw in draws]
    chance = 0.0
    for size in range(1, n_groups + 1):
        for chosen in combinations(range(n_groups), size):
            within = 1.0
            for draw, none in zip(draws, nothing, strict=True):
                within *= draw.chance_within(frozenset(chosen)) - none
            chance += (-1) ** (n_groups - size) * within
    return min(max(chance, 0.0), 1.0)


def _share_answered(draws: Sequence[_Draw], n_groups: int) -> float:
    """Give the expected share of the groups that some part answers."""
    everything = frozenset(range(n_groups))
    missed = 0.0
    for group in everything:
        none = 1.0
        for draw in draws:
            none *= draw.chance_within(everything - {group})
        missed += none
    return 1.0 - missed / n_groups


# ---- metrics


def _right_at(judged: Judgements, cutoff: int) -> Values:
    return judged.right[:, cutoff - 1]


def _found_at(judged: Judgements, cutoff: int) -> Values:
    return judged.found[:, cutoff - 1]


def _reciprocal_rank(judged: Judgements, _cutoff: int) -> Values:
    """Expected 1 / rank: the chance that rank k is the first right one, over k; 0 if none is."""
    gained = np.diff(judged.right, axis=1, prepend=0.0)
    ranks: Values = gained @ (1.0 / np.arange(1, judged.depth + 1))
    return ranks


ACCURACY = Measure(of_each=_right_at, has_cutoff=True)
RECALL = Measure(of_each=_found_at, has_cutoff=True)
RECIPROCAL_RANK = Measure(of_each=_reciprocal_rank)


def nil_counts(gold: Flags, answered: Flags) -> Counts:
    """Count right, wrong and missed NIL answers."""
    return Counts(
        right=int((gold & answered).sum()),
        wrong=int((~gold & answered).sum()),
        missed=int((gold & ~answered).sum()),
    )


def _counts(judged: Judgements) -> Counts:
    return nil_counts(judged.nil, judged.answered_nil)


NIL_PRECISION = Measure(of_all=lambda judged, _: _counts(judged).precision)
NIL_RECALL = Measure(of_all=lambda judged, _: _counts(judged).recall)
NIL_F1 = Measure(of_all=lambda judged, _: _counts(judged).f1)
