"""TransE and TransR: scores, losses and gradients of a batch, in compiled loops.

TransE (Bordes et al., 2013): the score of a triple is minus the distance from head plus relation
to tail. TransR (Lin et al., 2015) takes that distance in a space of each relation: heads and tails
are multiplied with the matrix of their relation, and clipped to unit length. A model without
projections is TransE.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from biograft.compute import njit
from biograft.graph.embedding.config import LOSSES, NORMS, LossConfig, ModelConfig
from biograft.graph.embedding.parallel import run_parallel

L1, L2, L2_SQUARED = 0, 1, 2
FAST = {"reassoc", "contract", "nsz"}
"""Optimisations allowed for sums; NaN and infinity are preserved."""
MARGIN, SELF_ADVERSARIAL = range(len(LOSSES))
I32: TypeAlias = npt.NDArray[np.int32]
I64: TypeAlias = npt.NDArray[np.int64]
Floats = npt.NDArray[Any]
"""32 bits in training, 64 bits in tests against definitions."""
_ROWS_AT_ONCE = 8


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
def _add_gradients(
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


@njit(fastmath=FAST)
def project(vector: Floats, matrix: Floats, out: Floats) -> None:
    """Multiply a row vector with a relation's matrix, four rows at a time.

    Args:
        vector: the vector of an entity.
        matrix: (dim, width).
        out: receives the product.
    """
    n_rows, width = matrix.shape
    out[:] = 0
    n_unrolled = n_rows - n_rows % 4
    for a in range(0, n_unrolled, 4):
        x0, x1, x2, x3 = vector[a], vector[a + 1], vector[a + 2], vector[a + 3]
        for b in range(width):
            out[b] += (
                x0 * matrix[a, b]
                + x1 * matrix[a + 1, b]
                + x2 * matrix[a + 2, b]
                + x3 * matrix[a + 3, b]
            )
    for a in range(n_unrolled, n_rows):
        for b in range(width):
            out[b] += vector[a] * matrix[a, b]


@njit(fastmath=FAST)
def clip_norm(vector: Floats) -> Any:
    """Scale a vector to norm 1 if it is longer.

    Args:
        vector: the vector, changed in place.

    Returns:
        the norm it had, or 0 if unchanged.
    """
    total = vector.dtype.type(0)
    for a in range(len(vector)):
        total += vector[a] * vector[a]
    if total <= 1:
        return vector.dtype.type(0)
    length = np.sqrt(total)
    for a in range(len(vector)):
        vector[a] /= length
    return length


@njit(fastmath=FAST)
def _backpropagate(
    gradient: Floats, projected: Floats, length: Any, matrix: Floats, out: Floats
) -> None:
    """Backpropagate the gradient of a projected vector through clipping and its matrix.

    The gradient becomes that before clipping, which the matrix needs.
    """
    if length > 0:
        dot = gradient.dtype.type(0)
        for b in range(len(gradient)):
            dot += gradient[b] * projected[b]
        for b in range(len(gradient)):
            gradient[b] = (gradient[b] - dot * projected[b]) / length
    for a in range(matrix.shape[0]):
        total = gradient.dtype.type(0)
        for b in range(matrix.shape[1]):
            total += matrix[a, b] * gradient[b]
        out[a] = total


@njit()
def log_sigmoid(x: float) -> Any:
    """Return the logarithm of the logistic function, without overflow."""
    return min(x, 0.0) - np.log1p(np.exp(-abs(x)))


@njit()
def sigmoid(x: float) -> Any:
    """Return the logistic function, without overflow."""
    small = np.exp(-abs(x))
    return 1.0 / (1.0 + small) if x >= 0 else small / (1.0 + small)


@njit(fastmath=FAST)
def loss_gradients(scores: Floats, gradients: Floats, n_triples: int, rules: LossRules) -> Any:
    """Compute the loss of a triple and its gradients by the scores.

    Margin ranking is the mean over pairs; the self-adversarial loss has fixed weights and is the
    mean of both terms.

    Args:
        scores: the score of the true triple, then those of its corrupted ones.
        gradients: receives the gradients.
        n_triples: true triples of the batch; both are divided by it, for a mean.
        rules: the loss.

    Returns:
        the loss.
    """
    n_negatives = len(scores) - 1
    if rules.loss == MARGIN:
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
def _slots(sides: npt.NDArray[np.uint8], k: int) -> tuple[int, int]:
    """Return the slots of head and tail of the true triple (0) or a corrupted one."""
    if k == 0:
        return 0, 1
    return (1 + k, 1) if sides[k - 1] == 0 else (0, 1 + k)


def batch_gradients(
    tables: Tables, batch: TripleBatch, rules: LossRules, buffers: GradientBuffers
) -> float:
    """Fill the gradient buffers of a batch.

    Args:
        tables: the vectors.
        batch: true and corrupted triples.
        rules: distance and loss.
        buffers: receive gradients, and the rows that have some.

    Returns:
        the loss, a mean over the triples.
    """
    run_parallel(_batch_gradients, len(batch.heads), tables, batch, rules, buffers)
    return float(buffers.losses[: len(batch.heads)].sum())


@njit()
def _batch_gradients(
    first: int,
    last: int,
    tables: Tables,
    batch: TripleBatch,
    rules: LossRules,
    buffers: GradientBuffers,
) -> None:
    n_triples, n_negatives = batch.entities.shape
    projects = len(tables.projection) > 0
    for i in range(first, last):
        relation, rows, sides = batch.relations[i], buffers.rows[i], batch.sides[i]
        vector, scores, weights = tables.relation[relation], buffers.scores[i], buffers.weights[i]
        rows[0], rows[1] = batch.heads[i], batch.tails[i]
        for k in range(n_negatives):
            rows[2 + k] = batch.entities[i, k]
        # the vectors in the space of the relation: by slot, those of TransE by row
        ends = buffers.projected[i] if projects else tables.entity
        if projects:
            for slot in range(2 + n_negatives):
                project(tables.entity[rows[slot]], tables.projection[relation], ends[slot])
                buffers.lengths[i, slot] = clip_norm(ends[slot]) if rules.clamp else 0
        for k in range(1 + n_negatives):
            head, tail = _slots(sides, k)
            if not projects:
                head, tail = rows[head], rows[tail]
            scores[k] = -distance(ends[head], vector, ends[tail], rules.norm)
        buffers.losses[i] = loss_gradients(scores, weights, n_triples, rules)
        by_relation = buffers.relation[i]
        by_relation[:] = 0
        if not (weights != 0).any():
            rows[:] = -1
            continue
        by = buffers.gradients[i] if projects else buffers.entity[i]
        by[:] = 0
        for k in range(1 + n_negatives):
            if weights[k] != 0:
                head, tail = _slots(sides, k)
                out = by[head], by_relation, by[tail]
                if not projects:
                    head, tail = rows[head], rows[tail]
                _add_gradients(
                    (ends[head], vector, ends[tail]),
                    out,
                    rules.norm,
                    -weights[k],
                    -scores[k],
                )
        # the ends of a true triple without loss still occur in its corrupted triples
        for slot in range(2 + n_negatives):
            if slot > 1 and weights[slot - 1] == 0:
                rows[slot] = -1
            elif projects:
                _backpropagate(
                    by[slot],
                    ends[slot],
                    buffers.lengths[i, slot],
                    tables.projection[relation],
                    buffers.entity[i, slot],
                )


def projection_gradients(
    tables: Tables, starts: I64, buffers: GradientBuffers, out: Floats
) -> None:
    """Sum the gradients of projections over runs of triples of one relation.

    Threads split the rows of the matrices, so that frequent relations are split, too.

    Args:
        tables: the vectors.
        starts: where the runs start, and where the last ends.
        buffers: the gradients of the batch.
        out: receives the sums, (runs, dim, width).
    """
    run_parallel(_sum_matrices, tables.entity.shape[1], tables, starts, buffers, out)


@njit(fastmath=FAST)
def _sum_matrices(
    top: int, bottom: int, tables: Tables, starts: I64, buffers: GradientBuffers, out: Floats
) -> None:
    for first in range(top, bottom, _ROWS_AT_ONCE):
        last = min(bottom, first + _ROWS_AT_ONCE)
        for run in range(len(starts) - 1):
            matrix = out[run]
            matrix[first:last] = 0
            for i in range(starts[run], starts[run + 1]):
                for slot in range(buffers.rows.shape[1]):
                    row = buffers.rows[i, slot]
                    if row < 0:
                        continue
                    gradient = buffers.gradients[i, slot]
                    for a in range(first, last):
                        x = tables.entity[row, a]
                        for b in range(len(gradient)):
                            matrix[a, b] += x * gradient[b]
