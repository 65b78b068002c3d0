"""Where the true entity stands among all, for triples that lack one end.

Distances to all candidates are counted, never sorted: how many are nearer than the true entity,
and how many as near. Other true answers do not count (they are *filtered*).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from biograft.graph.embedding.config import NORMS, ModelConfig
from biograft.graph.embedding.scoring import FAST, L1, Floats, Tables, project, shorten
from biograft.graph.embedding.threads import in_parts
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
    candidates = np.unique(np.concatenate([known.heads, known.tails]))
    place = np.full(known.n_entities, -1, np.int64)
    place[candidates] = np.arange(len(candidates))
    found = {}
    for side in SIDES:
        counts = Counts(np.zeros(len(asked), np.int64), np.zeros(len(asked), np.int64))
        answers, starts = _list_known(known, side)
        for relation in np.unique(asked.relations):
            chosen = np.flatnonzero(asked.relations == relation)
            given, wanted = _ends(asked, side)
            table, shift = _prepare(tables, config, candidates, (int(relation), side))
            keys = given[chosen].astype(np.int64) * len(known.relation_names) + relation
            questions = _Questions(
                np.ascontiguousarray(table[place[given[chosen]]] + shift),
                place[wanted[chosen]],
                np.searchsorted(starts, keys, "left"),
                np.searchsorted(starts, keys, "right"),
            )
            out = Counts(np.zeros(len(chosen), np.int64), np.zeros(len(chosen), np.int64))
            norm = NORMS.index(config.norm)
            in_parts(_count, len(chosen), table, questions, (place[answers], norm), out)
            counts.better[chosen], counts.equal[chosen] = out
            progress.advance(len(chosen))
        found[side] = counts
    return found


def _ends(triples: Triples, side: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Give what is known of triples and what is asked for."""
    ends = triples.heads, triples.tails
    return ends if side == "tail" else (ends[1], ends[0])


def _list_known(known: Triples, side: str) -> tuple[npt.NDArray[np.int32], I64]:
    """List all true answers by question: the answers, and the key of each one's question."""
    given, wanted = _ends(known, side)
    keys = given.astype(np.int64) * len(known.relation_names) + known.relations
    order = np.lexsort((wanted, keys))
    answers, keys = wanted[order], keys[order]
    first = np.ones(len(keys), np.bool_)
    first[1:] = (keys[1:] != keys[:-1]) | (answers[1:] != answers[:-1])
    return answers[first], keys[first]


def _prepare(
    tables: Tables, config: ModelConfig, candidates: npt.NDArray[Any], asked: tuple[int, str]
) -> tuple[Floats, Floats]:
    """Give the candidates in a relation's space, and the way from what is given to the answer."""
    relation, side = asked
    if side == "head" and config.inverse:
        relation += len(tables.relation) // 2
    way = tables.relation[relation]
    shift = way if side == "tail" or config.inverse else -way
    if not len(tables.projection):
        whole = len(candidates) == len(tables.entity)
        return (tables.entity if whole else tables.entity[candidates]), shift
    table = np.empty((len(candidates), len(way)), tables.entity.dtype)
    matrix = np.ascontiguousarray(tables.projection[relation])
    rows = np.ascontiguousarray(tables.entity)
    in_parts(_project_all, len(candidates), rows, candidates, (matrix, config.clamp), table)
    return table, shift


@numba.njit(cache=True, nogil=True)
def _project_all(
    first: int, last: int, rows: Floats, chosen: Any, how: tuple[Floats, bool], out: Floats
) -> None:
    for k in range(first, last):
        project(rows[chosen[k]], how[0], out[k])
        if how[1]:
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
