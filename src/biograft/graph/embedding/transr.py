"""TransR (Lin et al., 2015): TransE in a space of each relation, reached by its projection.

Heads and tails are multiplied with the matrix of their relation and clipped to unit length before
TransE's distance is taken. Models without projections are TransE.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from biograft.compiled import njit
from biograft.graph.embedding.parallel import run_parallel
from biograft.graph.embedding.transe import (
    FAST,
    I64,
    Floats,
    GradientBuffers,
    LossRules,
    Tables,
    TripleBatch,
    add_gradients,
    distance,
    loss_gradients,
    set_active_rows,
    transe,
)

_ROWS_AT_ONCE = 8


@njit(fastmath=FAST)
def project(vector: Floats, matrix: Floats, out: Floats) -> None:
    """Multiply a row vector with a relation's matrix, four rows at a time."""
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
def project_backward(gradient: Floats, matrix: Floats, out: Floats) -> None:
    """Backpropagate the gradient of a projected vector to the vector."""
    for a in range(matrix.shape[0]):
        total = gradient.dtype.type(0)
        for b in range(matrix.shape[1]):
            total += matrix[a, b] * gradient[b]
        out[a] = total


@njit(fastmath=FAST)
def clip_norm(vector: Floats) -> Any:
    """Scale a vector to norm 1 if it is longer; return the norm it had, or 0 if unchanged."""
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
def clip_norm_backward(gradient: Floats, clipped: Floats, length: Any) -> None:
    """Backpropagate the gradient of a clipped vector to the vector, in place."""
    if length == 0:
        return
    dot = gradient.dtype.type(0)
    for a in range(len(gradient)):
        dot += gradient[a] * clipped[a]
    for a in range(len(gradient)):
        gradient[a] = (gradient[a] - dot * clipped[a]) / length


def batch_gradients(
    tables: Tables, batch: TripleBatch, rules: LossRules, buffers: GradientBuffers
) -> float:
    """Fill the gradient buffers of a batch and return its loss, the mean over its triples."""
    kernel = _transr if len(tables.projection) else transe
    run_parallel(kernel, len(batch.heads), tables, batch, rules, buffers)
    return float(buffers.losses[: len(batch.heads)].sum())


@njit(fastmath=FAST)
def _score_projected(
    tables: Tables, batch: TripleBatch, rules: LossRules, buffers: GradientBuffers, i: int
) -> None:
    """Project all entities of a triple and its corrupted triples, and score them."""
    matrix, relation = tables.projection[batch.relations[i]], tables.relation[batch.relations[i]]
    ends, scores = buffers.projected[i], buffers.scores[i]
    for slot in range(2 + batch.entities.shape[1]):
        row = batch.entities[i, slot - 2] if slot > 1 else batch.heads[i]
        if slot == 1:
            row = batch.tails[i]
        project(tables.entity[row], matrix, ends[slot])
        buffers.lengths[i, slot] = (
            clip_norm(ends[slot]) if rules.clamp else buffers.scores.dtype.type(0)
        )
    scores[0] = -distance(ends[0], relation, ends[1], rules.norm)
    for k in range(batch.entities.shape[1]):
        if batch.sides[i, k] == 0:
            scores[1 + k] = -distance(ends[2 + k], relation, ends[1], rules.norm)
        else:
            scores[1 + k] = -distance(ends[0], relation, ends[2 + k], rules.norm)


@njit()
def _transr(
    first: int,
    last: int,
    tables: Tables,
    batch: TripleBatch,
    rules: LossRules,
    buffers: GradientBuffers,
) -> None:
    n_triples, n_negatives = batch.entities.shape
    norm = rules.norm
    for i in range(first, last):
        _score_projected(tables, batch, rules, buffers, i)
        scores, weights, ends = buffers.scores[i], buffers.weights[i], buffers.projected[i]
        buffers.losses[i] = loss_gradients(scores, weights, n_triples, rules)
        by_relation, by = buffers.relation[i], buffers.gradients[i]
        by_relation[:] = 0
        if not set_active_rows(batch, buffers, i):
            continue
        by[:] = 0
        relation = tables.relation[batch.relations[i]]
        out = (by[0], by_relation, by[1])
        add_gradients((ends[0], relation, ends[1]), out, norm, -weights[0], -scores[0])
        for k in range(n_negatives):
            if weights[1 + k] == 0:
                continue
            triple, out = (ends[0], relation, ends[2 + k]), (by[0], by_relation, by[2 + k])
            if batch.sides[i, k] == 0:
                triple, out = (ends[2 + k], relation, ends[1]), (by[2 + k], by_relation, by[1])
            add_gradients(triple, out, norm, -weights[1 + k], -scores[1 + k])
        for slot in range(2 + n_negatives):
            if buffers.rows[i, slot] >= 0:
                clip_norm_backward(by[slot], ends[slot], buffers.lengths[i, slot])
                matrix = tables.projection[batch.relations[i]]
                project_backward(by[slot], matrix, buffers.entity[i, slot])


def projection_gradients(
    tables: Tables, starts: I64, buffers: GradientBuffers, out: Floats
) -> None:
    """Sum the gradients of projections over runs of triples of one relation: (runs, dim, width).

    Threads split the rows of the matrices, so that frequent relations are split, too.
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
