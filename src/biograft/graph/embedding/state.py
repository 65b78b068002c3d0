"""State of the training of graph embeddings: vectors, optimiser moments, and how they begin."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from biograft.graph.embedding.config import GraphRecipe, ModelConfig
from biograft.graph.embedding.optimiser import Moments, make_moments
from biograft.graph.embedding.translation import Floats, Tables, table_shapes
from biograft.graph.triples import Triples

Rows = npt.NDArray[np.int64]


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
        if not self.valid_mrr:
            return self.epoch
        return max(self.valid_mrr, key=lambda look: (look[1], -look[0]))[0]

    @property
    def final_tables(self) -> Tables:
        """The final vectors: the best on the valid split, or the last."""
        return self.best or self.tables

    def n_bytes(self) -> int:
        """Return the bytes of vectors and optimiser state."""
        arrays = [*self.tables, *(part for moments in self.moments for part in moments)]
        return sum(array.nbytes for array in arrays + list(self.best or ()))


def new_run(
    train: Triples, recipe: GraphRecipe, dtype: type = np.float32, start: Tables | None = None
) -> EmbeddingRun:
    """Return the state before the first epoch, with the vectors of ``start`` instead of random."""
    n_relations = len(train.relation_names)
    tables = initial_tables((train.n_entities, n_relations), recipe.model, recipe.training.seed)
    if start is not None:
        projection = start.projection if len(start.projection) else tables.projection
        tables = Tables(start.entity, start.relation, projection)
    tables = Tables(*(table.astype(dtype, copy=False) for table in tables))
    return EmbeddingRun(tables, tuple(make_moments(table, recipe.optimiser) for table in tables))


def initial_tables(sizes: tuple[int, int], config: ModelConfig, seed: int) -> Tables:
    """Sample random vectors of norm 1; initialise projections as configured."""
    rng = np.random.default_rng(seed)
    entities, relations, shape = table_shapes(sizes, config)
    entity, relation = _directions(rng, *entities), _directions(rng, *relations)
    if config.kind == "transe":
        projection = np.zeros(shape, np.float32)
    elif config.projection == "identity":
        projection = np.broadcast_to(np.eye(*shape[1:], dtype=np.float32), shape).copy()
    else:
        span = np.sqrt(6 / (config.dim + config.width))
        projection = rng.uniform(-span, span, shape).astype(np.float32)
    return Tables(entity, relation, projection)


def _directions(rng: np.random.Generator, n_rows: int, size: int) -> Floats:
    rows = rng.random((n_rows, size), np.float32)
    rows *= 2
    rows -= 1
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return rows


def with_inverse(triples: Triples) -> Triples:
    """Add the inverse of every triple, with a relation of its own."""
    names = triples.relation_names
    back = triples.relations + np.int32(len(names))
    return Triples(
        np.concatenate([triples.heads, triples.tails]),
        np.concatenate([triples.relations, back]),
        np.concatenate([triples.tails, triples.heads]),
        np.concatenate([triples.splits, triples.splits]),
        triples.n_entities,
        (*names, *(f"{name} (inverse)" for name in names)),
    )
