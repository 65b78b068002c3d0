"""TransE (Bordes et al., 2013): scores, losses and gradients of a batch, in compiled loops.

The score of a triple is minus the distance from head plus relation to tail. TransR shares the
distance, the losses and the buffers for gradients.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from biograft.compiled import njit
from biograft.graph.embedding.config import LOSSES, NORMS, LossConfig, ModelConfig

L1, L2, L2_SQUARED = 0, 1, 2
FAST = {"reassoc", "contract", "nsz"}
"""Optimisations allowed for sums; NaN and infinity are preserved."""
MARGIN, SELF_ADVERSARIAL = range(len(LOSSES))
I32: TypeAlias = npt.NDArray[np.int32]
I64: TypeAlias = npt.NDArray[np.int64]
Floats = npt.NDArray[Any]
"""32 bits in training, 64 bits in tests against definitions."""


class Tables(NamedTuple):
    """The vectors and projections of a model."""

    entity: Floats  # (entities, dim)
    relation: Floats  # (relations, width)
    projection: Floats  # (relations, dim, width); without relations for TransE


def table_shapes(sizes: tuple[int, int], model: ModelConfig) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of the tables of a model, by the numbers of entities and relations."""
    n_entities, n_relations = sizes
    n_projections = n_relations if model.kind == "transr" else 0
    return (
        (n_entities, model.dim),
        (n_relations, model.width),
        (n_projections, model.dim, model.width),
    )


def all_finite(tables: Tables) -> bool:
    """Whether all values are finite; the sum of a table shows it."""
    with np.errstate(invalid="ignore"):
        return all(bool(np.isfinite(table.sum(dtype=np.float64))) for table in tables)


class LossRules(NamedTuple):
    """Distance and loss of a model, as compiled loops take them."""

    norm: int
    clamp: bool
    loss: int
    margin: float
    temperature: float


def make_loss_rules(model: ModelConfig, loss: LossConfig) -> LossRules:
    """Encode a model's distance and loss for compiled loops."""
    norm, kind = NORMS.index(model.norm), LOSSES.index(loss.kind)
    return LossRules(norm, model.clamp, kind, loss.margin, loss.temperature)


class TripleBatch(NamedTuple):
    """True triples, ordered by relation for TransR, and their corrupted triples."""

    heads: I32
    relations: I32
    tails: I32
    entities: I32  # (batch, negatives): the replacing entity
    sides: npt.NDArray[np.uint8]  # (batch, negatives): 0 replaces the head, 1 the tail


class GradientBuffers(NamedTuple):
    """Gradients of a batch, a slot per entity of each triple; rows are -1 for zero gradients."""

    rows: I32  # (batch, 2 + negatives)
    entity: Floats  # (batch, 2 + negatives, dim)
    relation: Floats  # (batch, width)
    projected: Floats  # (batch, 2 + negatives, width): vectors in the relation's space
    lengths: Floats  # (batch, 2 + negatives): norm before clipping, 0 if not clipped
    gradients: Floats  # (batch, 2 + negatives, width): of the projected vectors
    scores: Floats  # (batch, 1 + negatives)
    weights: Floats  # (batch, 1 + negatives): gradients of the loss by the scores
    losses: npt.NDArray[np.float64]  # (batch,)


def make_buffers(tables: Tables, n_triples: int, n_negatives: int) -> GradientBuffers:
    """Allocate the gradients of a batch."""
    kind, n_slots = tables.entity.dtype, 2 + n_negatives
    dim, width = tables.entity.shape[1], tables.relation.shape[1]
    bent = (n_triples, n_slots, width) if len(tables.projection) else (0, n_slots, width)
    return GradientBuffers(
        rows=np.full((n_triples, n_slots), -1, np.int32),
        entity=np.zeros((n_triples, n_slots, dim), kind),
        relation=np.zeros((n_triples, width), kind),
        projected=np.zeros(bent, kind),
        lengths=np.zeros(bent[:2], kind),
        gradients=np.zeros(bent, kind),
        scores=np.zeros((n_triples, 1 + n_negatives), kind),
        weights=np.zeros((n_triples, 1 + n_negatives), kind),
        losses=np.zeros(n_triples),
    )


@njit(fastmath=FAST)
def distance(head: Floats, relation: Floats, tail: Floats, norm: int) -> Any:
    """Return the distance from head plus relation to tail."""
    total = head.dtype.type(0)
    if norm == L1:
        for a in range(len(head)):
            total += abs(head[a] + relation[a] - tail[a])
        return total
    for a in range(len(head)):
        gap = head[a] + relation[a] - tail[a]
        total += gap * gap
    return np.sqrt(total) if norm == L2 else total


@njit(fastmath=FAST)
def add_gradients(
    triple: tuple[Floats, Floats, Floats],
    out: tuple[Floats, Floats, Floats],
    norm: int,
    factor: Any,
    length: Any,
) -> None:
    """Add ``factor`` times the gradient of a distance by head, relation and tail.

    The gradient of a zero distance counts as 0. ``length`` is the distance.
    """
    head, relation, tail = triple
    by_head, by_relation, by_tail = out
    if norm == L1:
        for a in range(len(head)):
            gradient = factor * np.sign(head[a] + relation[a] - tail[a])
            by_head[a] += gradient
            by_relation[a] += gradient
            by_tail[a] -= gradient
        return
    scale = head.dtype.type(2) * factor
    if norm == L2:
        scale = factor / length if length > 0 else head.dtype.type(0)
    for a in range(len(head)):
        gradient = scale * (head[a] + relation[a] - tail[a])
        by_head[a] += gradient
        by_relation[a] += gradient
        by_tail[a] -= gradient


@njit()
def log_sigmoid(x: float) -> Any:
    """Return the logarithm of the logistic function, without overflow."""
    return min(x, 0.0) - np.log1p(np.exp(-abs(x)))


@njit()
def sigmoid(x: float) -> Any:
    """Return the logistic function, without overflow."""
    small = np.exp(-abs(x))
    return 1.0 / (1.0 + small) if x >= 0 else small / (1.0 + small)


@njit()
def loss_gradients(scores: Floats, gradients: Floats, n_triples: int, rules: LossRules) -> Any:
    """Write the gradients by the scores (the true triple's first) and return the loss of a triple.

    Both are divided by ``n_triples``, for a mean over true triples. Margin ranking is the mean over
    pairs; the self-adversarial loss has fixed weights and is the mean of both terms.
    """
    if rules.loss == MARGIN:
        return _margin(scores, gradients, n_triples, rules)
    return _self_adversarial(scores, gradients, n_triples, rules)


@njit(fastmath=FAST)
def _margin(scores: Floats, gradients: Floats, n_triples: int, rules: LossRules) -> Any:
    n_negatives = len(scores) - 1
    scale = 1.0 / (n_triples * n_negatives)
    total, n_active = 0.0, 0
    for k in range(1, n_negatives + 1):
        excess = rules.margin + scores[k] - scores[0]
        gradients[k] = scale if excess > 0 else 0.0
        if not excess <= 0:  # also if it is NaN
            total += excess
            n_active += 1
    gradients[0] = -scale * n_active
    return scale * total


@njit(fastmath=FAST)
def _self_adversarial(scores: Floats, gradients: Floats, n_triples: int, rules: LossRules) -> Any:
    n_negatives = len(scores) - 1
    scale = 0.5 / n_triples
    highest = scores[1:].max()
    weights: Any = np.exp(rules.temperature * (scores[1:] - highest))
    weights /= weights.sum()
    true = rules.margin + np.float64(scores[0])
    loss = -log_sigmoid(true)
    gradients[0] = -scale * sigmoid(-true)
    for k in range(n_negatives):
        false = rules.margin + np.float64(scores[k + 1])
        loss -= weights[k] * log_sigmoid(-false)
        gradients[k + 1] = scale * weights[k] * sigmoid(false)
    return scale * loss


@njit()
def set_active_rows(batch: TripleBatch, buffers: GradientBuffers, i: int) -> Any:
    """Set the rows that a triple has gradients for, and return whether it has any.

    The ends of a true triple without loss still occur in its corrupted triples.
    """
    active = (buffers.weights[i] != 0).any()
    buffers.rows[i, 0] = batch.heads[i] if active else -1
    buffers.rows[i, 1] = batch.tails[i] if active else -1
    for k in range(batch.entities.shape[1]):
        used = buffers.weights[i, 1 + k] != 0
        buffers.rows[i, 2 + k] = batch.entities[i, k] if used else -1
    return active


@njit()
def transe(
    first: int,
    last: int,
    tables: Tables,
    batch: TripleBatch,
    rules: LossRules,
    buffers: GradientBuffers,
) -> None:
    """Compute losses and gradients of a range of triples by TransE."""
    entity, norm = tables.entity, rules.norm
    n_triples, n_negatives = batch.entities.shape
    for i in range(first, last):
        head, tail = entity[batch.heads[i]], entity[batch.tails[i]]
        relation, scores = tables.relation[batch.relations[i]], buffers.scores[i]
        scores[0] = -distance(head, relation, tail, norm)
        for k in range(n_negatives):
            corrupted = entity[batch.entities[i, k]]
            if batch.sides[i, k] == 0:
                scores[1 + k] = -distance(corrupted, relation, tail, norm)
            else:
                scores[1 + k] = -distance(head, relation, corrupted, norm)
        buffers.losses[i] = loss_gradients(scores, buffers.weights[i], n_triples, rules)
        out, by_relation = buffers.entity[i], buffers.relation[i]
        by_relation[:] = 0
        if not set_active_rows(batch, buffers, i):
            continue
        out[:] = 0
        weights, by = buffers.weights[i], (out[0], by_relation, out[1])
        add_gradients((head, relation, tail), by, norm, -weights[0], -scores[0])
        for k in range(n_negatives):
            if weights[1 + k] == 0:
                continue
            corrupted = entity[batch.entities[i, k]]
            triple, by = (head, relation, corrupted), (out[0], by_relation, out[2 + k])
            if batch.sides[i, k] == 0:
                triple, by = (corrupted, relation, tail), (out[2 + k], by_relation, out[1])
            add_gradients(triple, by, norm, -weights[1 + k], -scores[1 + k])
