"""What one true triple and its false ones cost, and how that changes with their scores."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numba
import numpy as np
import numpy.typing as npt

from biograft.graph.embedding.config import LOSSES, NORMS, LossConfig, ModelConfig
from biograft.graph.embedding.scoring import (
    FAST,
    Floats,
    Tables,
    add_slopes,
    distance,
    in_parts,
    project,
    project_back,
    shorten,
    shorten_back,
)

MARGIN, SELF_ADVERSARIAL = range(len(LOSSES))


class Rules(NamedTuple):
    """How triples are scored and what they cost, as compiled loops take it."""

    norm: int
    clamp: bool
    loss: int
    margin: float
    temperature: float


def make_rules(model: ModelConfig, loss: LossConfig) -> Rules:
    """Number a model's distance and a loss for compiled loops."""
    norm, kind = NORMS.index(model.norm), LOSSES.index(loss.kind)
    return Rules(norm, model.clamp, kind, loss.margin, loss.temperature)


@numba.njit(cache=True, nogil=True)
def log_sigmoid(x: float) -> Any:
    """Give the logarithm of the logistic function, without overflow."""
    return min(x, 0.0) - np.log1p(np.exp(-abs(x)))


@numba.njit(cache=True, nogil=True)
def sigmoid(x: float) -> Any:
    """Give the logistic function, without overflow."""
    small = np.exp(-abs(x))
    return 1.0 / (1.0 + small) if x >= 0 else small / (1.0 + small)


@numba.njit(cache=True, nogil=True)
def cost_slopes(scores: Floats, slopes: Floats, n_triples: int, rules: Rules) -> Any:
    """Write the slopes by the scores (the true triple's first) and give the loss of a triple.

    Both are shares of a mean over ``n_triples`` true triples. Margin ranking takes the mean over
    pairs; of the self-adversarial loss the weights count as fixed, and the half of both parts.
    """
    if rules.loss == MARGIN:
        return _margin(scores, slopes, n_triples, rules)
    return _self_adversarial(scores, slopes, n_triples, rules)


@numba.njit(fastmath=FAST, cache=True, nogil=True)
def _margin(scores: Floats, slopes: Floats, n_triples: int, rules: Rules) -> Any:
    n_negatives = len(scores) - 1
    share = 1.0 / (n_triples * n_negatives)
    total, n_active = 0.0, 0
    for k in range(1, n_negatives + 1):
        excess = rules.margin + scores[k] - scores[0]
        slopes[k] = share if excess > 0 else 0.0
        if not excess <= 0:  # also if it is no number
            total += excess
            n_active += 1
    slopes[0] = -share * n_active
    return share * total


@numba.njit(fastmath=FAST, cache=True, nogil=True)
def _self_adversarial(scores: Floats, slopes: Floats, n_triples: int, rules: Rules) -> Any:
    n_negatives = len(scores) - 1
    share = 0.5 / n_triples
    highest = scores[1:].max()
    weights: Any = np.exp(rules.temperature * (scores[1:] - highest))
    weights /= weights.sum()
    true = rules.margin + np.float64(scores[0])
    loss = -log_sigmoid(true)
    slopes[0] = -share * sigmoid(-true)
    for k in range(n_negatives):
        false = rules.margin + np.float64(scores[k + 1])
        loss -= weights[k] * log_sigmoid(-false)
        slopes[k + 1] = share * weights[k] * sigmoid(false)
    return share * loss


I32: TypeAlias = npt.NDArray[np.int32]
I64: TypeAlias = npt.NDArray[np.int64]
_ROWS_AT_ONCE = 8


class Batch(NamedTuple):
    """True triples, ordered by relation for TransR, and the false ones made of them."""

    heads: I32
    relations: I32
    tails: I32
    entities: I32  # (batch, negatives): what stands in place of an end
    sides: npt.NDArray[np.uint8]  # (batch, negatives): 0 the head's place, 1 the tail's


class Slots(NamedTuple):
    """What a batch asks of vectors; rows are -1 where it asks nothing."""

    rows: I32  # (batch, 2 + negatives)
    entity: Floats  # (batch, 2 + negatives, dim)
    relation: Floats  # (batch, width)
    projected: Floats  # (batch, 2 + negatives, width): vectors in the relation's space
    lengths: Floats  # (batch, 2 + negatives): before they were shortened, 0 if not
    slopes: Floats  # (batch, 2 + negatives, width): by the projected vectors
    scores: Floats  # (batch, 1 + negatives)
    weights: Floats  # (batch, 1 + negatives): slopes of the loss by the scores
    losses: npt.NDArray[np.float64]  # (batch,)


def make_slots(tables: Tables, n_triples: int, n_negatives: int) -> Slots:
    """Make room for the slopes of a batch."""
    kind, n_slots = tables.entity.dtype, 2 + n_negatives
    dim, width = tables.entity.shape[1], tables.relation.shape[1]
    bent = (n_triples, n_slots, width) if len(tables.projection) else (0, n_slots, width)
    return Slots(
        rows=np.full((n_triples, n_slots), -1, np.int32),
        entity=np.zeros((n_triples, n_slots, dim), kind),
        relation=np.zeros((n_triples, width), kind),
        projected=np.zeros(bent, kind),
        lengths=np.zeros(bent[:2], kind),
        slopes=np.zeros(bent, kind),
        scores=np.zeros((n_triples, 1 + n_negatives), kind),
        weights=np.zeros((n_triples, 1 + n_negatives), kind),
        losses=np.zeros(n_triples),
    )


def batch_slopes(tables: Tables, batch: Batch, rules: Rules, slots: Slots) -> float:
    """Fill the slots of a batch and give its loss, the mean over its triples."""
    kernel = _transr if len(tables.projection) else _transe
    in_parts(kernel, len(batch.heads), tables, batch, rules, slots)
    return float(slots.losses[: len(batch.heads)].sum())


@numba.njit(cache=True, nogil=True)
def _set_rows(batch: Batch, slots: Slots, i: int) -> Any:
    """Note which vectors a triple speaks of: none where it costs nothing.

    A true triple that costs nothing is still an end of its false ones.
    """
    active = (slots.weights[i] != 0).any()
    slots.rows[i, 0] = batch.heads[i] if active else -1
    slots.rows[i, 1] = batch.tails[i] if active else -1
    for k in range(batch.entities.shape[1]):
        used = slots.weights[i, 1 + k] != 0
        slots.rows[i, 2 + k] = batch.entities[i, k] if used else -1
    return active


@numba.njit(cache=True, nogil=True)
def _transe(
    first: int, last: int, tables: Tables, batch: Batch, rules: Rules, slots: Slots
) -> None:
    entity, norm = tables.entity, rules.norm
    n_triples, n_negatives = batch.entities.shape
    for i in range(first, last):
        head, tail = entity[batch.heads[i]], entity[batch.tails[i]]
        relation, scores = tables.relation[batch.relations[i]], slots.scores[i]
        scores[0] = -distance(head, relation, tail, norm)
        for k in range(n_negatives):
            other = entity[batch.entities[i, k]]
            if batch.sides[i, k] == 0:
                scores[1 + k] = -distance(other, relation, tail, norm)
            else:
                scores[1 + k] = -distance(head, relation, other, norm)
        slots.losses[i] = cost_slopes(scores, slots.weights[i], n_triples, rules)
        out, by_relation = slots.entity[i], slots.relation[i]
        by_relation[:] = 0
        if not _set_rows(batch, slots, i):
            continue
        out[:] = 0
        weights, by = slots.weights[i], (out[0], by_relation, out[1])
        add_slopes((head, relation, tail), by, norm, -weights[0], -scores[0])
        for k in range(n_negatives):
            if weights[1 + k] == 0:
                continue
            other = entity[batch.entities[i, k]]
            ends, by = (head, relation, other), (out[0], by_relation, out[2 + k])
            if batch.sides[i, k] == 0:
                ends, by = (other, relation, tail), (out[2 + k], by_relation, out[1])
            add_slopes(ends, by, norm, -weights[1 + k], -scores[1 + k])


@numba.njit(fastmath=FAST, cache=True, nogil=True)
def _score_projected(tables: Tables, batch: Batch, rules: Rules, slots: Slots, i: int) -> None:
    """Project all entities of a triple and its false ones, and score them."""
    matrix, relation = tables.projection[batch.relations[i]], tables.relation[batch.relations[i]]
    ends, scores = slots.projected[i], slots.scores[i]
    for slot in range(2 + batch.entities.shape[1]):
        row = batch.entities[i, slot - 2] if slot > 1 else batch.heads[i]
        if slot == 1:
            row = batch.tails[i]
        project(tables.entity[row], matrix, ends[slot])
        slots.lengths[i, slot] = shorten(ends[slot]) if rules.clamp else slots.scores.dtype.type(0)
    scores[0] = -distance(ends[0], relation, ends[1], rules.norm)
    for k in range(batch.entities.shape[1]):
        if batch.sides[i, k] == 0:
            scores[1 + k] = -distance(ends[2 + k], relation, ends[1], rules.norm)
        else:
            scores[1 + k] = -distance(ends[0], relation, ends[2 + k], rules.norm)


@numba.njit(cache=True, nogil=True)
def _transr(
    first: int, last: int, tables: Tables, batch: Batch, rules: Rules, slots: Slots
) -> None:
    n_triples, n_negatives = batch.entities.shape
    norm = rules.norm
    for i in range(first, last):
        _score_projected(tables, batch, rules, slots, i)
        scores, weights, ends = slots.scores[i], slots.weights[i], slots.projected[i]
        slots.losses[i] = cost_slopes(scores, weights, n_triples, rules)
        by_relation, by = slots.relation[i], slots.slopes[i]
        by_relation[:] = 0
        if not _set_rows(batch, slots, i):
            continue
        by[:] = 0
        relation = tables.relation[batch.relations[i]]
        out = (by[0], by_relation, by[1])
        add_slopes((ends[0], relation, ends[1]), out, norm, -weights[0], -scores[0])
        for k in range(n_negatives):
            if weights[1 + k] == 0:
                continue
            given, out = (ends[0], relation, ends[2 + k]), (by[0], by_relation, by[2 + k])
            if batch.sides[i, k] == 0:
                given, out = (ends[2 + k], relation, ends[1]), (by[2 + k], by_relation, by[1])
            add_slopes(given, out, norm, -weights[1 + k], -scores[1 + k])
        for slot in range(2 + n_negatives):
            if slots.rows[i, slot] >= 0:
                shorten_back(by[slot], ends[slot], slots.lengths[i, slot])
                matrix = tables.projection[batch.relations[i]]
                project_back(by[slot], matrix, slots.entity[i, slot])


def matrix_slopes(tables: Tables, starts: I64, slots: Slots, out: Floats) -> None:
    """Sum the slopes by projections: of each run of triples of one relation, (runs, dim, width).

    Threads share the rows of the matrices, so that one frequent relation keeps none waiting.
    """
    in_parts(_sum_matrices, tables.entity.shape[1], tables, starts, slots, out)


@numba.njit(fastmath=FAST, cache=True, nogil=True)
def _sum_matrices(
    top: int, bottom: int, tables: Tables, starts: I64, slots: Slots, out: Floats
) -> None:
    for first in range(top, bottom, _ROWS_AT_ONCE):
        last = min(bottom, first + _ROWS_AT_ONCE)
        for run in range(len(starts) - 1):
            matrix = out[run]
            matrix[first:last] = 0
            for i in range(starts[run], starts[run + 1]):
                for slot in range(slots.rows.shape[1]):
                    row = slots.rows[i, slot]
                    if row < 0:
                        continue
                    slope = slots.slopes[i, slot]
                    for a in range(first, last):
                        x = tables.entity[row, a]
                        for b in range(len(slope)):
                            matrix[a, b] += x * slope[b]
