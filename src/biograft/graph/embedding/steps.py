"""State of the training of graph embeddings, and its steps in compiled loops."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from biograft.arrays import Array
from biograft.graph.config import PROJECTED, GraphRecipe
from biograft.graph.embedding.loops import (
    Moments,
    Tables,
    TripleBatch,
    batch_gradients,
    make_buffers,
    make_loss_rules,
    make_moments,
    make_update_rule,
    projection_gradients,
    step_table,
    table_shapes,
)
from biograft.graph.triples import Triples


@dataclass
class EmbeddingRun:
    """State of a training between two epochs: all that the next one depends on."""

    tables: Tables
    moments: tuple[Moments, ...]
    epoch: int = 0
    step: int = 0
    losses: list[float] = field(default_factory=list)
    valid_mrr: list[tuple[int, float]] = field(default_factory=list)
    """MRR on the valid split, by epoch."""
    best: Tables | None = None
    seconds: list[float] = field(default_factory=list)

    @property
    def best_epoch(self) -> int:
        """The epoch of the final vectors."""
        return max(self.valid_mrr, key=lambda each: each[1], default=(self.epoch, 0.0))[0]

    def arrays(self) -> dict[str, Array]:
        """Return vectors and optimiser state by the names that they are saved by."""
        arrays: dict[str, Array] = self.tables._asdict()
        for name, moments in zip(Tables._fields, self.moments, strict=True):
            arrays |= {f"{name}.{part}": array for part, array in moments._asdict().items()}
        if self.best is not None:
            arrays |= {f"best.{name}": table for name, table in self.best._asdict().items()}
        return arrays

    def n_bytes(self) -> int:
        """Return the bytes of vectors and optimiser state."""
        return sum(array.nbytes for array in self.arrays().values())


def new_run(
    train: Triples, recipe: GraphRecipe, dtype: type = np.float32, start: Tables | None = None
) -> EmbeddingRun:
    """Return the state before the first epoch.

    Args:
        train: the training triples.
        recipe: the model, its seed and its optimiser.
        dtype: the precision.
        start: vectors to start with instead of random ones, and projections if it has some.

    Returns:
        vectors of norm 1, projections as configured, and no epoch.
    """
    model, rng = recipe.model, np.random.default_rng(recipe.training.seed)
    entities, relations, shape = table_shapes(train.n_entities, len(train.relation_names), model)
    entity, relation = _directions(rng, *entities), _directions(rng, *relations)
    if model.kind != PROJECTED:
        projection = np.zeros(shape, np.float32)
    elif model.projection == "identity":
        projection = np.broadcast_to(np.eye(*shape[1:], dtype=np.float32), shape).copy()
    else:
        span = np.sqrt(6 / (model.dim + model.width))
        projection = rng.uniform(-span, span, shape).astype(np.float32)
    if start is not None:
        entity, relation = start.entity, start.relation
        projection = start.projection if len(start.projection) else projection
    tables = Tables(*(part.astype(dtype, copy=False) for part in (entity, relation, projection)))
    return EmbeddingRun(tables, tuple(make_moments(table, recipe.optimiser) for table in tables))


def _directions(rng: np.random.Generator, n_rows: int, size: int) -> Array:
    rows = rng.random((n_rows, size), np.float32)
    rows *= 2
    rows -= 1
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return rows


class CompiledSteps:
    """Steps in compiled loops, with buffers for the largest batch.

    Args:
        run: the vectors and moments, changed in place.
        recipe: model, loss and optimiser.
        size: triples of the largest batch.
    """

    def __init__(self, run: EmbeddingRun, recipe: GraphRecipe, size: int) -> None:
        self.run, self.recipe = run, recipe
        self.rules = make_loss_rules(recipe.model, recipe.loss)
        tables = run.tables
        self.buffers = make_buffers(tables, size, recipe.sampling.negatives)
        self.group_of = [np.full(len(table), -1, np.int32) for table in tables]
        n_runs = min(size, len(tables.projection))
        self.matrices = np.zeros((n_runs, *tables.projection.shape[1:]), tables.entity.dtype)

    def to_host(self) -> None:
        """Do nothing: the steps change the run itself."""

    def step(self, batch: TripleBatch) -> float:
        """Make one step.

        Args:
            batch: true and corrupted triples.

        Returns:
            the loss.
        """
        run, model, n = self.run, self.recipe.model, len(batch.heads)
        run.step += 1
        loss = batch_gradients(run.tables, batch, self.rules, self.buffers)
        rows, entity = self.buffers.rows[:n], self.buffers.entity[:n]
        relations = np.where(rows[:, 0] >= 0, batch.relations, np.int32(-1))
        parts = [
            (rows.reshape(-1), entity.reshape(-1, model.dim), model.entity_bound),
            (relations, self.buffers.relation[:n], model.relation_bound),
        ]
        if len(run.tables.projection):
            starts = np.flatnonzero(np.diff(batch.relations, prepend=-1, append=-1))
            matrices = self.matrices[: len(starts) - 1]
            projection_gradients(run.tables, starts, self.buffers, matrices)
            flat = matrices.reshape(len(matrices), -1)
            parts.append((batch.relations[starts[:-1]], flat, "none"))
        for k, (slots, gradients, bound) in enumerate(parts):
            table, rule = run.tables[k], make_update_rule(self.recipe.optimiser, run.step, bound)
            table = table.reshape(len(table), -1)
            step_table(table, slots, gradients, run.moments[k], rule, self.group_of[k])
        return loss
