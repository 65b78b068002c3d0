"""Where the true entity stands among all, for triples that lack one end.

Distances to all candidates are counted, never sorted: how many are nearer than the true entity,
and how many as near. Other true answers do not count (they are *filtered*).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from biograft.errors import InputError
from biograft.graph.embedding.config import NORMS, ModelConfig
from biograft.graph.embedding.scoring import (
    FAST,
    L1,
    Floats,
    Tables,
    all_numbers,
    in_parts,
    project,
    shorten,
)
from biograft.graph.triples import Triples
from biograft.progress import Progress

I64 = npt.NDArray[np.int64]
SIDES = ("tail", "head")
_BLOCK = 16
"""Dimensions after which a candidate that is already too far is given up."""


class Counts(NamedTuple):
    """How many candidates are nearer than the true entity of each triple, and how many as near."""

    better: I64
    equal: I64


class _Candidates(NamedTuple):
    """The entities to choose from: where each stands among them, and their vectors."""

    place: I64  # (entities,), -1 for one that is no candidate
    vectors: Floats  # (candidates, dim)


class _Known(NamedTuple):
    """All true answers, in the order of their questions."""

    answers: npt.NDArray[np.int32]
    keys: I64  # of the question of each


class _Questions(NamedTuple):
    """Places to search from, the true answers, and where other answers are listed."""

    origins: Floats  # (questions, width)
    answers: I64  # (questions,): rows of the table of candidates
    starts: I64  # (questions,): of known answers
    ends: I64


def rank_triples(
    tables: Tables,
    config: ModelConfig,
    asked: Triples,
    known: Triples,
    progress: Progress | None = None,
) -> dict[str, Counts]:
    """Count what stands before the true tail and the true head of each triple.

    Candidates are the entities of ``known`` triples, which the asked ones are among.
    """
    progress = progress or Progress(enabled=False)
    if not all_numbers(tables):
        raise InputError(
            "a vector is no number, so that nothing can be ranked", path="embeddings",
            remedy="train them again, with a lower optimiser.learning_rate or bounded vectors",
        )  # fmt: skip
    candidates = _find_candidates(tables, known)
    found, n_done = {}, 0
    for side in SIDES:
        counts, answers = _no_counts(len(asked)), _list_known(known, side)
        for relation in np.unique(asked.relations):
            chosen = asked.relations == relation
            some = _rank_some(tables, config, candidates, asked.where(chosen), answers, side)
            counts.better[chosen], counts.equal[chosen] = some
            n_done += len(some.better)
            progress.advance(len(some.better), n_done / (len(SIDES) * len(asked)))
        found[side] = counts
    return found


def _rank_some(
    tables: Tables,
    config: ModelConfig,
    candidates: _Candidates,
    asked: Triples,
    known: _Known,
    side: str,
) -> Counts:
    """Count for triples of one relation."""
    relation, place = int(asked.relations[0]), candidates.place
    given, wanted = _ends(asked, side)
    table, shift = _prepare(tables, config, candidates, (relation, side))
    keys = given.astype(np.int64) * len(asked.relation_names) + relation
    questions = _Questions(
        np.ascontiguousarray(table[place[given]] + shift),
        place[wanted],
        np.searchsorted(known.keys, keys, "left"),
        np.searchsorted(known.keys, keys, "right"),
    )
    out, how = _no_counts(len(asked)), (place[known.answers], NORMS.index(config.norm))
    in_parts(_count, len(asked), table, questions, how, out)
    return out


def _find_candidates(tables: Tables, known: Triples) -> _Candidates:
    rows = np.unique(np.concatenate([known.heads, known.tails]))
    place = np.full(known.n_entities, -1, np.int64)
    place[rows] = np.arange(len(rows))
    whole = len(rows) == len(tables.entity)
    return _Candidates(place, np.ascontiguousarray(tables.entity if whole else tables.entity[rows]))


def _no_counts(n: int) -> Counts:
    return Counts(np.zeros(n, np.int64), np.zeros(n, np.int64))


def _ends(triples: Triples, side: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Give what is known of triples and what is asked for."""
    ends = triples.heads, triples.tails
    return ends if side == "tail" else (ends[1], ends[0])


def _list_known(known: Triples, side: str) -> _Known:
    given, wanted = _ends(known, side)
    keys = given.astype(np.int64) * len(known.relation_names) + known.relations
    order = np.lexsort((wanted, keys))
    answers, keys = wanted[order], keys[order]
    first = np.ones(len(keys), np.bool_)
    first[1:] = (keys[1:] != keys[:-1]) | (answers[1:] != answers[:-1])
    return _Known(answers[first], keys[first])


def _prepare(
    tables: Tables, config: ModelConfig, candidates: _Candidates, asked: tuple[int, str]
) -> tuple[Floats, Floats]:
    """Give the candidates in a relation's space, and the way from what is given to the answer."""
    relation, side = asked
    if side == "head" and config.inverse:
        relation += len(tables.relation) // 2
    way = tables.relation[relation]
    shift = way if side == "tail" or config.inverse else -way
    if not len(tables.projection):
        return candidates.vectors, shift
    table = np.empty((len(candidates.vectors), len(way)), tables.entity.dtype)
    matrix = np.ascontiguousarray(tables.projection[relation])
    in_parts(_project_all, len(table), candidates.vectors, matrix, config.clamp, table)
    return table, shift


@numba.njit(cache=True, nogil=True)
def _project_all(
    first: int, last: int, vectors: Floats, matrix: Floats, clamp: bool, out: Floats
) -> None:
    for k in range(first, last):
        project(vectors[k], matrix, out[k])
        if clamp:
            shorten(out[k])


@numba.njit(fastmath=FAST, cache=True, nogil=True)
def _far(origin: Floats, other: Floats, norm: int, limit: Any) -> Any:
    """Measure how far two places are (squared but for L1); no further than beyond a limit."""
    total = origin.dtype.type(0)
    for first in range(0, len(origin), _BLOCK):
        part = origin.dtype.type(0)
        last = min(len(origin), first + _BLOCK)
        if norm == L1:
            for a in range(first, last):
                part += abs(origin[a] - other[a])
        else:
            for a in range(first, last):
                part += (origin[a] - other[a]) * (origin[a] - other[a])
        total += part
        if total > limit:
            return total
    return total


@numba.njit(cache=True, nogil=True)
def _count(
    first: int, last: int, table: Floats, questions: _Questions, how: tuple[Any, int], out: Counts
) -> None:
    known, norm = how
    for q in range(first, last):
        origin, answer = questions.origins[q], questions.answers[q]
        limit = _far(origin, table[answer], norm, origin.dtype.type(np.inf))
        better, equal = 0, -1  # the answer itself is as far as itself
        for row in range(len(table)):
            far = _far(origin, table[row], norm, limit)
            better += far < limit
            equal += far == limit
        for k in range(questions.starts[q], questions.ends[q]):
            if known[k] == answer:
                continue
            far = _far(origin, table[known[k]], norm, limit)
            better -= far < limit
            equal -= far == limit
        out.better[q] = better
        out.equal[q] = equal


CUTOFFS = (1, 3, 10)
TIES = ("realistic", "optimistic", "pessimistic")

Ranks = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LinkPrediction:
    """The ranks of true entities, by side."""

    counts: dict[str, Counts]
    n_candidates: int

    def ranks(self, side: str = "both", ties: str = "realistic") -> Ranks:
        """Give ranks from 1: of tails, then of heads, for ``both``."""
        share = {"optimistic": 0.0, "realistic": 0.5, "pessimistic": 1.0}[ties]
        wanted = SIDES if side == "both" else (side,)
        return np.concatenate(
            [1 + self.counts[s].better + share * self.counts[s].equal for s in wanted]
        )

    def metrics(self, side: str = "both", ties: str = "realistic") -> dict[str, float]:
        """Give MRR and hits as shares of 1, and the mean rank."""
        ranks = self.ranks(side, ties)
        hits = {f"hits@{k}": float(np.mean(ranks <= k)) for k in CUTOFFS}
        return {"mrr": float(np.mean(1 / ranks)), **hits, "mean_rank": float(np.mean(ranks))}

    def to_json(self) -> dict[str, Any]:
        """Give the figures as plain values; all but mean ranks in percent."""
        return {
            **in_percent(self.metrics()),
            "unit": "percent",
            **{side: in_percent(self.metrics(side)) for side in SIDES},
            **{ties: in_percent(self.metrics(ties=ties)) for ties in TIES[1:]},
            "n": len(self.counts["tail"].better),
            "n_candidates": self.n_candidates,
        }


def in_percent(metrics: dict[str, float]) -> dict[str, float]:
    """Turn shares into percent; ranks stay."""
    return {
        name: round(value if name == "mean_rank" else 100 * value, 4)
        for name, value in metrics.items()
    }


def predict_links(
    tables: Tables,
    config: ModelConfig,
    triples: Triples,
    split: str = "test",
    progress: Progress | None = None,
) -> LinkPrediction:
    """Rank the true entities of one split among all entities that stand in a triple.

    Filtered by the triples of all splits, those of ``test`` too, as is usual.
    """
    asked = triples.of_split(split)
    if not len(asked):
        raise InputError(
            f"holds no {split} triples",
            path="graph",
            remedy=f"build the knowledge base from files called train, valid and test, or rank "
            f"another part (not {split})",
        )
    counts = rank_triples(tables, config, asked, triples, progress)
    stand = np.unique(np.concatenate([triples.heads, triples.tails]))
    return LinkPrediction(counts, len(stand))
