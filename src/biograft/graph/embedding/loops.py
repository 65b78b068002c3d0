"""The compiled loops of TransE and TransR: negatives, losses, gradients and optimiser steps.

TransE (Bordes et al., 2013): the score of a triple is minus the distance from head plus relation
to tail. TransR (Lin et al., 2015) takes that distance in a space of each relation: heads and tails
are multiplied with the matrix of their relation, and clipped to unit length. A model without
projections is TransE.

Loops run on several threads, each on a range of the rows. What a loop writes for one row depends on
that row alone, so the number of threads does not change the results. Every negative follows from
the seed, the epoch, the position of the triple in it and the index of the negative, so that neither
threads nor resuming change the results.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from biograft.arrays import Array, Bytes, Int32s, Ints
from biograft.compute import n_cores, njit
from biograft.graph.config import (
    BOUNDS,
    LOSSES,
    NORMS,
    OPTIMISERS,
    PROJECTED,
    LossConfig,
    ModelConfig,
    OptimiserConfig,
    SamplingConfig,
)
from biograft.graph.triples import Triples

FAST = {"reassoc", "contract", "nsz"}
"""Optimisations allowed for sums; NaN and infinity are preserved."""
L1, L2, L2_SQUARED = range(len(NORMS))
MARGIN, SELF_ADVERSARIAL = range(len(LOSSES))
ADAM, LAZY_ADAM, ADAGRAD, ROW_ADAGRAD = range(len(OPTIMISERS) - 1)  # "auto" is one of these
FREE, UNIT, BALL = range(len(BOUNDS))
_ROWS_AT_ONCE = 8
MIN_PARALLEL_ROWS = 64
"""Loops with fewer rows run on the calling thread alone."""


@cache
def thread_pool() -> ThreadPoolExecutor:
    """Return the pool that all loops share."""
    return ThreadPoolExecutor(n_cores(), "biograft-embedding")


def run_parallel(loop: Callable[..., Any], n: int, *arguments: Any) -> None:
    """Run a compiled loop on several threads.

    Args:
        loop: called as ``loop(first, last, *arguments)``, on ranges that cover ``range(n)``.
        n: the number of rows.
        arguments: passed on to the loop.
    """
    workers = n_cores() if n >= MIN_PARALLEL_ROWS else 1
    bounds = [n * k // workers for k in range(workers + 1)]
    futures = [thread_pool().submit(loop, *ends, *arguments) for ends in pairwise(bounds[1:])]
    loop(0, bounds[1], *arguments)
    for future in futures:
        future.result()


class Tables(NamedTuple):
    """The vectors and projections of a model."""

    entity: Array  # (entities, dim)
    """Vectors of entities, a row each."""
    relation: Array  # (relations, width)
    """Vectors of relations, a row each."""
    projection: Array  # (relations, dim, width); without relations for TransE
    """Projection matrices of relations (TransR); empty for other models."""


def table_shapes(
    n_entities: int, n_relations: int, model: ModelConfig
) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of the tables of a model.

    Args:
        n_entities: the number of entities.
        n_relations: the number of relations.
        model: kind and sizes.

    Returns:
        the shapes, in the order of :class:`Tables`.
    """
    n_projections = n_relations if model.kind == PROJECTED else 0
    return (
        (n_entities, model.dim),
        (n_relations, model.width),
        (n_projections, model.dim, model.width),
    )


def all_finite(tables: Tables) -> bool:
    """Return True if all values are finite; the sum of a table shows it.

    Args:
        tables: the vectors.
    """
    with np.errstate(invalid="ignore"):
        return all(bool(np.isfinite(table.sum(dtype=np.float64))) for table in tables)


class NegativeSampler(NamedTuple):
    """Entities, probabilities and known triples for sampling negatives."""

    pool: Int32s  # entities to sample from
    head_probability: Array  # (relations,): probability to replace the head
    known: Ints  # hash table of true triples, -1 where empty; of size 1 if unfiltered
    n_entities: int
    n_relations: int


def make_sampler(train: Triples, config: SamplingConfig) -> NegativeSampler:
    """Build the sampler of the training triples.

    Args:
        train: the true triples.
        config: which end is replaced, and whether true triples may be sampled.

    Returns:
        the sampler.
    """
    n_relations = len(train.relation_names)
    probability = np.full(n_relations, 0.5)
    if config.kind == "bernoulli":
        probability = bernoulli_probabilities(train)
    known = np.full(1, -1, np.int64)
    if config.filtered:
        known = np.full(1 << max(4, int(2 * len(train)).bit_length()), -1, np.int64)
        _fill(known, triple_keys(train))
    pool = np.union1d(train.heads, train.tails)
    return NegativeSampler(pool, probability, known, train.n_entities, n_relations)


def bernoulli_probabilities(train: Triples) -> Array:
    """Return the probability to replace the head: tph / (tph + hpt), as in TransH.

    tph is the mean number of tails per head of a relation, hpt that of heads per tail: the
    probability is the number of distinct tails over that of distinct heads and tails.

    Args:
        train: the true triples.

    Returns:
        the probability of each relation; 0.5 without triples.
    """
    n = train.n_entities
    relation = train.relations.astype(np.int64)
    heads, tails = (
        np.bincount(np.unique(relation * n + rows) // n, minlength=len(train.relation_names))
        for rows in (train.heads, train.tails)
    )
    total = heads + tails
    return np.where(total > 0, tails / np.maximum(total, 1), 0.5)


def triple_keys(triples: Triples) -> Ints:
    """Return a unique integer for each triple.

    Args:
        triples: the triples; keys are ordered by head, relation and tail.
    """
    head = triples.heads.astype(np.int64) * len(triples.relation_names) + triples.relations
    return head * triples.n_entities + triples.tails


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
MAX_TRIES = 64
"""Random tries for one negative before the entities are tried in order."""


@njit()
def splitmix64(number: np.uint64) -> np.uint64:
    """Turn a counter into 64 pseudo-random bits (SplitMix64).

    Args:
        number: The counter.
    """
    number = number + _GOLDEN
    number = (number ^ (number >> _S30)) * _FIRST
    number = (number ^ (number >> _S27)) * _SECOND
    return number ^ (number >> _S31)


@njit()
def _slot(known: Ints, key: Any) -> Any:
    mask = len(known) - 1
    index: Any = np.int64(splitmix64(np.uint64(key)) & np.uint64(mask))
    while known[index] != -1 and known[index] != key:
        index = (index + 1) & mask
    return index


@njit()
def _fill(known: Ints, keys: Any) -> None:
    for key in keys:
        known[_slot(known, key)] = key


@njit()
def _is_negative(
    sampler: NegativeSampler, triple: tuple[int, int, int], side: int, entity: int
) -> bool:
    """Return True if replacing the head (side 0) or tail (1) by an entity gives a negative."""
    head, relation, tail = triple
    if entity == (head if side == 0 else tail):
        return False
    if len(sampler.known) == 1:
        return True
    if side == 0:
        head = entity
    else:
        tail = entity
    key = (np.int64(head) * sampler.n_relations + relation) * sampler.n_entities + tail
    return bool(sampler.known[_slot(sampler.known, key)] != key)


@njit()
def _sample_negative(
    sampler: NegativeSampler, triple: tuple[int, int, int], counter: np.uint64
) -> tuple[int, int]:
    """Sample the side to replace and the replacing entity.

    If one side has no negatives the other is taken; if neither has, a true triple is returned.
    """
    chance = np.float64(splitmix64(counter) >> _S11) / 9007199254740992.0
    side = 0 if chance < sampler.head_probability[triple[1]] else 1
    size = np.uint64(len(sampler.pool))
    entity = 0
    for attempt in range(1, MAX_TRIES):
        entity = sampler.pool[np.int64(splitmix64(counter + np.uint64(attempt)) % size)]
        if _is_negative(sampler, triple, side, entity):
            return side, entity
    start = np.int64(splitmix64(counter) % size)
    for flip in range(2):
        for step in range(len(sampler.pool)):
            candidate = sampler.pool[(start + step) % len(sampler.pool)]
            if _is_negative(sampler, triple, side ^ flip, candidate):
                return side ^ flip, candidate
    return side, entity


class TripleBatch(NamedTuple):
    """True triples, ordered by relation for TransR, and their corrupted triples."""

    heads: Int32s
    relations: Int32s
    tails: Int32s
    entities: Int32s  # (batch, negatives): the replacing entity
    sides: Bytes  # (batch, negatives): 0 replaces the head, 1 the tail


def sample_negatives(
    sampler: NegativeSampler,
    true: tuple[Int32s, Int32s, Int32s],
    positions: Ints,
    seed: np.uint64,
    n_negatives: int,
) -> TripleBatch:
    """Sample the negatives of true triples.

    Args:
        sampler: made from the training triples.
        true: heads, relations and tails.
        positions: the position of each triple in the epoch.
        seed: that of the epoch.
        n_negatives: corrupted triples for each true one.

    Returns:
        the batch of true and corrupted triples.
    """
    shape = (len(positions), n_negatives)
    batch = TripleBatch(*true, np.empty(shape, np.int32), np.empty(shape, np.uint8))
    run_parallel(_sample_negatives, len(positions), sampler, batch, positions, seed)
    return batch


@njit()
def _sample_negatives(
    first: int,
    last: int,
    sampler: NegativeSampler,
    batch: TripleBatch,
    positions: Ints,
    seed: np.uint64,
) -> None:
    n_negatives = batch.entities.shape[1]
    for i in range(first, last):
        triple = (batch.heads[i], batch.relations[i], batch.tails[i])
        for k in range(n_negatives):
            number = np.uint64(positions[i] * n_negatives + k)
            side, entity = _sample_negative(sampler, triple, splitmix64(seed ^ splitmix64(number)))
            batch.sides[i, k] = side
            batch.entities[i, k] = entity


class LossRules(NamedTuple):
    """Distance and loss of a model, as compiled loops take them."""

    norm: int
    clamp: bool
    loss: int
    margin: float
    temperature: float


def make_loss_rules(model: ModelConfig, loss: LossConfig) -> LossRules:
    """Encode a model's distance and loss for compiled loops.

    Args:
        model: Norm and clipping.
        loss: The loss.
    """
    norm, kind = NORMS.index(model.norm), LOSSES.index(loss.kind)
    return LossRules(norm, model.clamp, kind, loss.margin, loss.temperature)


class GradientBuffers(NamedTuple):
    """Gradients of a batch, a slot per entity of each triple; rows are -1 for zero gradients."""

    rows: Int32s  # (batch, 2 + negatives)
    entity: Array  # (batch, 2 + negatives, dim)
    relation: Array  # (batch, width)
    projected: Array  # (batch, 2 + negatives, width): vectors in the relation's space
    lengths: Array  # (batch, 2 + negatives): norm before clipping, 0 if not clipped
    gradients: Array  # (batch, 2 + negatives, width): of the projected vectors
    scores: Array  # (batch, 1 + negatives)
    weights: Array  # (batch, 1 + negatives): gradients of the loss by the scores
    losses: Array  # (batch,)


def make_buffers(tables: Tables, n_triples: int, n_negatives: int) -> GradientBuffers:
    """Allocate the gradients of a batch.

    Args:
        tables: The vectors.
        n_triples: True triples of the largest batch.
        n_negatives: Corrupted triples of each.
    """
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
def distance(head: Array, relation: Array, tail: Array, norm: int) -> Any:
    """Return the distance from head plus relation to tail.

    Args:
        head: A vector.
        relation: A vector.
        tail: A vector.
        norm: ``L1``, ``L2`` or ``L2_SQUARED``.
    """
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
    triple: tuple[Array, Array, Array],
    out: tuple[Array, Array, Array],
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
def project(vector: Array, matrix: Array, out: Array) -> None:
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
def clip_norm(vector: Array) -> Any:
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
    gradient: Array, projected: Array, length: Any, matrix: Array, out: Array
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
    """Return the logarithm of the logistic function, without overflow.

    Args:
        x: The argument.
    """
    return min(x, 0.0) - np.log1p(np.exp(-abs(x)))


@njit()
def sigmoid(x: float) -> Any:
    """Return the logistic function, without overflow.

    Args:
        x: The argument.
    """
    small = np.exp(-abs(x))
    return 1.0 / (1.0 + small) if x >= 0 else small / (1.0 + small)


@njit(fastmath=FAST)
def loss_gradients(scores: Array, gradients: Array, n_triples: int, rules: LossRules) -> Any:
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
def _slots(sides: Bytes, k: int) -> tuple[int, int]:
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
    tables: Tables, starts: Ints, buffers: GradientBuffers, out: Array
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
    top: int, bottom: int, tables: Tables, starts: Ints, buffers: GradientBuffers, out: Array
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


class Moments(NamedTuple):
    """Optimiser state of a table."""

    first: Array  # (rows, size) for Adam, else empty
    second: Array  # (rows, size); (rows, 1) for row-wise Adagrad


class UpdateRule(NamedTuple):
    """Settings of one optimiser step, as compiled loops take them."""

    kind: int
    rate: float
    beta1: float
    beta2: float
    epsilon: float
    correction1: float  # bias corrections of Adam's moments
    correction2: float
    bound: int


class RowGroups(NamedTuple):
    """Slots of a batch's gradients, grouped by row of a table."""

    rows: Int32s  # (touched,)
    starts: Int32s  # (touched + 1,)
    order: Int32s  # slots, by row
    group_of: Int32s  # (rows of the table,): -1 for a row without gradients


def make_moments(table: Array, config: OptimiserConfig) -> Moments:
    """Allocate the optimiser state of a table.

    Args:
        table: the vectors or matrices.
        config: the optimiser.

    Returns:
        the state, all 0.
    """
    n_rows, size = len(table), int(np.prod(table.shape[1:]))
    first = np.zeros((n_rows if "adam" in config.kind else 0, size), table.dtype)
    second = np.zeros((n_rows, 1 if config.kind == "row-adagrad" else size), table.dtype)
    return Moments(first, second)


def make_update_rule(config: OptimiserConfig, step: int, bound: str) -> UpdateRule:
    """Return the settings of a step, as compiled loops take them.

    Args:
        config: the optimiser.
        step: the number of the step, from 1.
        bound: the bound on the norm of a row.

    Returns:
        the settings.
    """
    return UpdateRule(
        OPTIMISERS.index(config.kind),
        config.learning_rate,
        config.beta1,
        config.beta2,
        config.epsilon,
        1 - config.beta1**step,
        1 - config.beta2**step,
        BOUNDS.index(bound),
    )


@njit()
def _group_rows(slots: Int32s, group_of: Int32s) -> RowGroups:
    """Group slots by row; ``group_of`` is -1 for every row before."""
    rows = np.empty(len(slots), np.int32)
    counts = np.zeros(len(slots) + 1, np.int32)
    n_rows = 0
    for row in slots:
        if row < 0:
            continue
        if group_of[row] < 0:
            group_of[row] = n_rows
            rows[n_rows] = row
            n_rows += 1
        counts[group_of[row] + 1] += 1
    starts = np.cumsum(counts[: n_rows + 1]).astype(np.int32)
    order = np.empty(starts[-1], np.int32)
    next_slot = starts.copy()
    for slot in range(len(slots)):
        if slots[slot] >= 0:
            group = group_of[slots[slot]]
            order[next_slot[group]] = slot
            next_slot[group] += 1
    return RowGroups(rows[:n_rows], starts, order, group_of)


@njit(fastmath=FAST)
def _sum_gradients(slots: Array, groups: RowGroups, group: int) -> Any:
    """Sum the gradients of a row into the first of its slots, in their order."""
    total = slots[groups.order[groups.starts[group]]]
    for slot in range(groups.starts[group] + 1, groups.starts[group + 1]):
        addend = slots[groups.order[slot]]
        for a in range(len(total)):
            total[a] += addend[a]
    return total


@njit(fastmath=FAST)
def _normalise(row: Array, bound: int) -> None:
    if bound == FREE:
        return
    total = row.dtype.type(0)
    for a in range(len(row)):
        total += row[a] * row[a]
    if total == 0 or (bound == BALL and total <= 1):
        return
    scale = row.dtype.type(1) / np.sqrt(total)
    for a in range(len(row)):
        row[a] *= scale


@njit(fastmath=FAST)
def _adam(row: Array, gradient: Array, first: Array, second: Array, rule: UpdateRule) -> None:
    kind = row.dtype.type
    beta1, beta2 = kind(rule.beta1), kind(rule.beta2)
    rate = kind(rule.rate / rule.correction1)
    root, epsilon = kind(1 / np.sqrt(rule.correction2)), kind(rule.epsilon)
    rest1, rest2 = kind(1) - beta1, kind(1) - beta2
    for a in range(len(row)):
        first[a] = beta1 * first[a] + rest1 * gradient[a]
        second[a] = beta2 * second[a] + rest2 * gradient[a] * gradient[a]
        row[a] -= rate * first[a] / (np.sqrt(second[a]) * root + epsilon)


@njit(fastmath=FAST)
def _adagrad(row: Array, gradient: Array, second: Array, rule: UpdateRule) -> None:
    rate, epsilon = row.dtype.type(rule.rate), row.dtype.type(rule.epsilon)
    if rule.kind == ADAGRAD:
        for a in range(len(row)):
            second[a] += gradient[a] * gradient[a]
            row[a] -= rate * gradient[a] / (np.sqrt(second[a]) + epsilon)
        return
    total = row.dtype.type(0)
    for a in range(len(row)):
        total += gradient[a] * gradient[a]
    second[0] += total / row.dtype.type(len(row))
    scale = rate / (np.sqrt(second[0]) + epsilon)
    for a in range(len(row)):
        row[a] -= scale * gradient[a]


@njit()
def _step_rows(
    first: int,
    last: int,
    table: Array,
    gradients: Array,
    groups: RowGroups,
    moments: Moments,
    rule: UpdateRule,
) -> None:
    """Update rows with gradients; by Adam every row, also those without (group -1).

    Rows that never had a gradient stay unchanged: normalising them again would round them.
    """
    zero = np.zeros(table.shape[1], table.dtype)
    for index in range(first, last):
        row = index if rule.kind == ADAM else groups.rows[index]
        group = groups.group_of[row]
        gradient = zero
        if group >= 0:
            gradient = _sum_gradients(gradients, groups, group)
        elif not (moments.first[row].any() or moments.second[row].any()):
            continue
        if rule.kind in (ADAM, LAZY_ADAM):
            _adam(table[row], gradient, moments.first[row], moments.second[row], rule)
        else:
            _adagrad(table[row], gradient, moments.second[row], rule)
        _normalise(table[row], rule.bound)


def step_table(
    table: Array,
    slots: Int32s,
    gradients: Array,
    moments: Moments,
    rule: UpdateRule,
    group_of: Int32s,
) -> None:
    """Make one step of the optimiser on a table. All but Adam update only rows with gradients.

    Args:
        table: the rows, changed in place.
        slots: the row of each gradient, -1 for none; several may belong to one row.
        gradients: one for each slot; they are overwritten.
        moments: state of the optimiser, changed in place.
        rule: its settings in this step.
        group_of: -1 for every row; scratch space, restored at the end.
    """
    groups = _group_rows(slots, group_of)
    n = len(table) if rule.kind == ADAM else len(groups.rows)
    run_parallel(_step_rows, n, table, gradients, groups, moments, rule)
    group_of[groups.rows] = -1
