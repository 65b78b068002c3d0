"""Filtered link prediction: rank the true entity among all candidates; MRR, hits@k, mean rank.

Distances are compared and counted, never sorted: how many candidates are closer than the true
entity, and how many equally close. Other true answers are filtered out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.compiled import njit
from biograft.errors import InputError
from biograft.graph.embedding.config import NORMS, ModelConfig
from biograft.graph.embedding.parallel import run_parallel
from biograft.graph.embedding.translation import (
    FAST,
    L1,
    Floats,
    Tables,
    all_finite,
    clip_norm,
    project,
)
from biograft.graph.triples import Triples
from biograft.progress import Progress

I64 = npt.NDArray[np.int64]
SIDES = ("tail", "head")
_BLOCK = 16
"""Dimensions after which a candidate that is already too far is skipped."""


class RankCounts(NamedTuple):
    """Number of candidates closer than the true entity of each triple, and equally close."""

    better: I64
    equal: I64


class _CandidateTable(NamedTuple):
    """The candidate entities: their positions by entity, and their vectors."""

    positions: I64  # (entities,), -1 for one that is no candidate
    vectors: Floats  # (candidates, dim)


class _KnownAnswers(NamedTuple):
    """All true answers, ordered by query."""

    answers: npt.NDArray[np.int32]
    keys: I64  # the query of each answer


class _RankingQueries(NamedTuple):
    """Query vectors, true answers, and the range of other known answers."""

    origins: Floats  # (queries, width)
    answers: I64  # (queries,): rows of the table of candidates
    starts: I64  # (queries,): of known answers
    ends: I64


def rank_triples(
    tables: Tables,
    config: ModelConfig,
    test_triples: Triples,
    known: Triples,
    progress: Progress | None = None,
) -> dict[str, RankCounts]:
    """Count the candidates before the true tail and the true head of each test triple.

    Candidates are the entities of the ``known`` triples, which include the test triples.
    """
    progress = progress or Progress(enabled=False)
    if not all_finite(tables):
        raise InputError(
            "a vector is not finite, so nothing can be ranked", path="embeddings",
            remedy="train them again, with a lower optimiser.learning_rate or bounded vectors",
        )  # fmt: skip
    candidates = _find_candidates(tables, known)
    counts_by_side, n_done = {}, 0
    for side in SIDES:
        counts, answers = _zero_counts(len(test_triples)), _list_answers(known, side)
        for relation in np.unique(test_triples.relations):
            selected = test_triples.relations == relation
            ranked = _rank_some(
                tables, config, candidates, test_triples.where(selected), answers, side
            )
            counts.better[selected], counts.equal[selected] = ranked
            n_done += len(ranked.better)
            progress.advance(len(ranked.better), n_done / (len(SIDES) * len(test_triples)))
        counts_by_side[side] = counts
    return counts_by_side


def _rank_some(
    tables: Tables,
    config: ModelConfig,
    candidates: _CandidateTable,
    test_triples: Triples,
    known: _KnownAnswers,
    side: str,
) -> RankCounts:
    """Count the candidates for test triples of one relation."""
    relation, index = int(test_triples.relations[0]), candidates.positions
    anchors, targets = _ends(test_triples, side)
    table, translation = _prepare(tables, config, candidates, (relation, side))
    keys = anchors.astype(np.int64) * len(test_triples.relation_names) + relation
    queries = _RankingQueries(
        np.ascontiguousarray(table[index[anchors]] + translation),
        index[targets],
        np.searchsorted(known.keys, keys, "left"),
        np.searchsorted(known.keys, keys, "right"),
    )
    out, options = _zero_counts(len(test_triples)), (index[known.answers], NORMS.index(config.norm))
    run_parallel(_count, len(test_triples), table, queries, options, out)
    return out


def _find_candidates(tables: Tables, known: Triples) -> _CandidateTable:
    rows = np.unique(np.concatenate([known.heads, known.tails]))
    index = np.full(known.n_entities, -1, np.int64)
    index[rows] = np.arange(len(rows))
    covers_all = len(rows) == len(tables.entity)
    return _CandidateTable(
        index, np.ascontiguousarray(tables.entity if covers_all else tables.entity[rows])
    )


def _zero_counts(n: int) -> RankCounts:
    return RankCounts(np.zeros(n, np.int64), np.zeros(n, np.int64))


def _ends(triples: Triples, side: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return the given ends of triples and the ends to predict."""
    ends = triples.heads, triples.tails
    return ends if side == "tail" else (ends[1], ends[0])


def _list_answers(known: Triples, side: str) -> _KnownAnswers:
    anchors, targets = _ends(known, side)
    keys = anchors.astype(np.int64) * len(known.relation_names) + known.relations
    order = np.lexsort((targets, keys))
    answers, keys = targets[order], keys[order]
    first = np.ones(len(keys), np.bool_)
    first[1:] = (keys[1:] != keys[:-1]) | (answers[1:] != answers[:-1])
    return _KnownAnswers(answers[first], keys[first])


def _prepare(
    tables: Tables, config: ModelConfig, candidates: _CandidateTable, test_triples: tuple[int, str]
) -> tuple[Floats, Floats]:
    """Return the candidates in a relation's space, and the translation from anchor to target."""
    relation, side = test_triples
    if side == "head" and config.inverse:
        relation += len(tables.relation) // 2
    vector = tables.relation[relation]
    translation = vector if side == "tail" or config.inverse else -vector
    if not len(tables.projection):
        return candidates.vectors, translation
    table = np.empty((len(candidates.vectors), len(vector)), tables.entity.dtype)
    matrix = np.ascontiguousarray(tables.projection[relation])
    run_parallel(_project_all, len(table), candidates.vectors, matrix, config.clamp, table)
    return table, translation


@njit()
def _project_all(
    first: int, last: int, vectors: Floats, matrix: Floats, clamp: bool, out: Floats
) -> None:
    for k in range(first, last):
        project(vectors[k], matrix, out[k])
        if clamp:
            clip_norm(out[k])


@njit(fastmath=FAST)
def _bounded_distance(origin: Floats, other: Floats, norm: int, limit: Any) -> Any:
    """Return the distance of two vectors (squared but for L1), or a bound above the limit."""
    total = origin.dtype.type(0)
    for first in range(0, len(origin), _BLOCK):
        block = origin.dtype.type(0)
        last = min(len(origin), first + _BLOCK)
        if norm == L1:
            for a in range(first, last):
                block += abs(origin[a] - other[a])
        else:
            for a in range(first, last):
                block += (origin[a] - other[a]) * (origin[a] - other[a])
        total += block
        if total > limit:
            return total
    return total


@njit()
def _count(
    first: int,
    last: int,
    table: Floats,
    queries: _RankingQueries,
    options: tuple[Any, int],
    out: RankCounts,
) -> None:
    known, norm = options
    for q in range(first, last):
        origin, answer = queries.origins[q], queries.answers[q]
        limit = _bounded_distance(origin, table[answer], norm, origin.dtype.type(np.inf))
        better, equal = 0, -1  # the answer itself is equally close
        for row in range(len(table)):
            d = _bounded_distance(origin, table[row], norm, limit)
            better += d < limit
            equal += d == limit
        for k in range(queries.starts[q], queries.ends[q]):
            if known[k] == answer:
                continue
            d = _bounded_distance(origin, table[known[k]], norm, limit)
            better -= d < limit
            equal -= d == limit
        out.better[q] = better
        out.equal[q] = equal


CUTOFFS = (1, 3, 10)
TIES = ("realistic", "optimistic", "pessimistic")

Ranks = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LinkPrediction:
    """Result of link prediction: the ranks of true entities, by side."""

    counts: dict[str, RankCounts]
    n_candidates: int

    def ranks(self, side: str = "both", ties: str = "realistic") -> Ranks:
        """Return ranks from 1; for ``both`` those of tails, then those of heads."""
        tie_weight = {"optimistic": 0.0, "realistic": 0.5, "pessimistic": 1.0}[ties]
        sides = SIDES if side == "both" else (side,)
        return np.concatenate(
            [1 + self.counts[s].better + tie_weight * self.counts[s].equal for s in sides]
        )

    def metrics(self, side: str = "both", ties: str = "realistic") -> dict[str, float]:
        """Return MRR and hits@k as fractions, and the mean rank."""
        ranks = self.ranks(side, ties)
        hits = {f"hits@{k}": float(np.mean(ranks <= k)) for k in CUTOFFS}
        return {"mrr": float(np.mean(1 / ranks)), **hits, "mean_rank": float(np.mean(ranks))}

    def to_json(self) -> dict[str, Any]:
        """Return the metrics as plain values; all but mean ranks in percent."""
        return {
            **in_percent(self.metrics()),
            "unit": "percent",
            **{side: in_percent(self.metrics(side)) for side in SIDES},
            **{ties: in_percent(self.metrics(ties=ties)) for ties in TIES[1:]},
            "n": len(self.counts["tail"].better),
            "n_candidates": self.n_candidates,
        }


def in_percent(metrics: dict[str, float]) -> dict[str, float]:
    """Convert fractions to percent; mean ranks stay."""
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
    """Rank the true entities of one split among all entities that occur in a triple.

    Filtered by the triples of all splits, including ``test``, as usual.
    """
    test_triples = triples.of_split(split)
    if not len(test_triples):
        raise InputError(
            f"holds no {split} triples",
            path="graph",
            remedy=f"build the knowledge base from files called train, valid and test, or rank "
            f"another split (not {split})",
        )
    counts = rank_triples(tables, config, test_triples, triples, progress)
    candidates = np.unique(np.concatenate([triples.heads, triples.tails]))
    return LinkPrediction(counts, len(candidates))
