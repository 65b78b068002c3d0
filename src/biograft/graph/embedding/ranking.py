"""Filtered link prediction: rank the true entity among all candidates; MRR, hits@k, mean rank.

Distances are compared and counted, never sorted: how many candidates are closer than the true
entity, and how many equally close. Other true answers are filtered out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from biograft.arrays import Array, Ints
from biograft.compute import njit
from biograft.errors import InputError
from biograft.graph.config import COMPILED, GRAPH_MODELS, NORMS, ModelConfig
from biograft.graph.embedding.loops import (
    FAST,
    L1,
    Tables,
    all_finite,
    clip_norm,
    project,
    run_parallel,
    triple_keys,
)
from biograft.graph.triples import Triples
from biograft.progress import Progress

SIDES = ("tail", "head")
_BLOCK = 16
"""Dimensions after which a candidate that is already too far is skipped."""


class RankCounts(NamedTuple):
    """Number of candidates closer than the true entity of each triple, and equally close."""

    better: Ints
    equal: Ints


class _RankingQueries(NamedTuple):
    """Query vectors, true answers, and the range of other known answers."""

    origins: Array  # (queries, width)
    answers: Ints  # (queries,): rows of the table of candidates
    starts: Ints  # (queries,): of known answers
    ends: Ints


def rank_triples(
    tables: Tables,
    config: ModelConfig,
    test_triples: Triples,
    known: Triples,
    progress: Progress | None = None,
) -> dict[str, RankCounts]:
    """Count the candidates before the true tail and the true head of each test triple.

    Args:
        tables: the vectors.
        config: the model.
        test_triples: the triples to rank.
        known: all true triples, which include these; their entities are the candidates.
        progress: receives the number of ranked triples.

    Returns:
        the counts by side.

    Raises:
        InputError: if a vector is not finite.
    """
    progress = progress or Progress(enabled=False)
    if not all_finite(tables):
        raise InputError(
            "a vector is not finite, so nothing can be ranked",
            path="embeddings",
            remedy="train them again, with a lower optimiser.learning_rate or bounded vectors",
        )
    entities = np.union1d(known.heads, known.tails)
    positions = np.full(known.n_entities, -1, np.int64)
    positions[entities] = np.arange(len(entities))
    covers_all = len(entities) == len(tables.entity)
    vectors = np.ascontiguousarray(tables.entity if covers_all else tables.entity[entities])
    n, n_done = len(test_triples), 0
    counts_by_side = {}
    for side in SIDES:
        if side == "head":
            known, test_triples = known.reversed(), test_triples.reversed()
        counts = RankCounts(np.zeros(n, np.int64), np.zeros(n, np.int64))
        keys = np.unique(triple_keys(known))  # true answers, ordered by query
        answers, keys = positions[keys % known.n_entities], keys // known.n_entities
        queries = triple_keys(test_triples) // known.n_entities
        for relation in np.unique(test_triples.relations):
            some = np.flatnonzero(test_triples.relations == relation)
            anchors = positions[test_triples.heads[some]]
            table, origins = _prepare(tables, config, vectors, anchors, int(relation), side)
            ranking_queries = _RankingQueries(
                np.ascontiguousarray(origins),
                positions[test_triples.tails[some]],
                np.searchsorted(keys, queries[some], "left"),
                np.searchsorted(keys, queries[some], "right"),
            )
            ranked = RankCounts(np.zeros(len(some), np.int64), np.zeros(len(some), np.int64))
            norm = NORMS.index(config.norm)
            run_parallel(_count, len(some), table, ranking_queries, answers, norm, ranked)
            counts.better[some], counts.equal[some] = ranked
            n_done += len(some)
            progress.advance(len(some), n_done / (len(SIDES) * n))
        counts_by_side[side] = counts
    return counts_by_side


def _prepare(
    tables: Tables, config: ModelConfig, vectors: Array, anchors: Ints, relation: int, side: str
) -> tuple[Array, Array]:
    """Return the candidates in a relation's space, and where the answers of anchors should be."""
    if side == "head" and config.inverse:
        relation += len(tables.relation) // 2
    vector = tables.relation[relation]
    forward = side == "tail" or config.inverse
    if config.kind not in COMPILED:
        import torch

        model = GRAPH_MODELS.load(config.kind)
        expect = model.tails if forward else model.heads
        known = torch.tensor(vectors[anchors]), torch.tensor(vector)
        return vectors, expect(*known).numpy()
    translation = vector if forward else -vector
    if not len(tables.projection):
        return vectors, vectors[anchors] + translation
    table = np.empty((len(vectors), len(vector)), tables.entity.dtype)
    matrix = np.ascontiguousarray(tables.projection[relation])
    run_parallel(_project_all, len(table), vectors, matrix, config.clamp, table)
    return table, table[anchors] + translation


@njit()
def _project_all(
    first: int, last: int, vectors: Array, matrix: Array, clamp: bool, out: Array
) -> None:
    for k in range(first, last):
        project(vectors[k], matrix, out[k])
        if clamp:
            clip_norm(out[k])


@njit(fastmath=FAST)
def _bounded_distance(origin: Array, other: Array, norm: int, limit: Any) -> Any:
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
    table: Array,
    queries: _RankingQueries,
    known: Ints,
    norm: int,
    out: RankCounts,
) -> None:
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

Ranks = Array


@dataclass(frozen=True, slots=True)
class LinkPrediction:
    """Result of link prediction: the ranks of true entities, by side."""

    counts: dict[str, RankCounts]
    """Number of better and equal candidates of each triple, by the side that was replaced."""
    n_candidates: int
    """Number of entities that each true one is ranked against."""

    def ranks(self, side: str = "both", ties: str = "realistic") -> Ranks:
        """Return ranks from 1; for ``both`` those of tails, then those of heads.

        Args:
            side: ``tail``, ``head`` or ``both``.
            ties: ``realistic``, ``optimistic`` or ``pessimistic``.
        """
        tie_weight = {"optimistic": 0.0, "realistic": 0.5, "pessimistic": 1.0}[ties]
        sides = SIDES if side == "both" else (side,)
        return np.concatenate(
            [1 + self.counts[s].better + tie_weight * self.counts[s].equal for s in sides]
        )

    def metrics(self, side: str = "both", ties: str = "realistic") -> dict[str, float]:
        """Return MRR and hits@k as fractions, and the mean rank.

        Args:
            side: ``tail``, ``head`` or ``both``.
            ties: ``realistic``, ``optimistic`` or ``pessimistic``.
        """
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
    """Convert fractions to percent; mean ranks stay.

    Args:
        metrics: Values by name.
    """
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

    Args:
        tables: the vectors.
        config: the model.
        triples: of all splits, by which ranks are filtered, as usual.
        split: the split to rank.
        progress: receives the number of ranked triples.

    Returns:
        the ranks of tails and heads.

    Raises:
        InputError: if the split has no triples, or a vector is not finite.
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
    return LinkPrediction(counts, len(np.union1d(triples.heads, triples.tails)))
