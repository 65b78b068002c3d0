"""The graph neighbourhood of the entities of a text, as rows of the entity table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError
from biograft.graph.embedding import Embeddings
from biograft.graph.neighbours import DIRECTIONS, NeighbourTable, first_types
from biograft.kb import KnowledgeBase
from biograft.models.knowledge_layers import NEIGHBOURS
from biograft.training.objectives.examples import EntityGraph
from biograft.training.pretraining.recipe import KnowledgeConfig

Ints = npt.NDArray[np.int64]
_SIGNS = np.array([1 if name == "out" else -1 for name in DIRECTIONS])


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The entities of a table, those of the text first, and their graph."""

    ids: tuple[str, ...]
    graph: EntityGraph


def with_vectors(
    config: KnowledgeConfig, ids: Sequence[str], counts: Ints, kb: KnowledgeBase | None
) -> tuple[tuple[str, ...], Ints]:
    """Append to the entities of a text those of ``vectors`` that the store names.

    Later texts may mention any of them, so a layer with entity inputs knows them all, with
    ``whole_graph``. They are found by their names, so without a store none is added. Returns the
    ids and their frequencies in the text.
    """
    if not config.takes_entity_inputs or kb is None:
        return tuple(ids), counts
    rows = np.setdiff1d(_rows_with_vectors(config, kb), _rows_of(ids, kb))
    more = [kb.id_at(int(row)) for row in rows]
    return (*ids, *more), np.concatenate([counts, np.zeros(len(more), np.int64)])


def read_neighbourhood(
    config: KnowledgeConfig,
    ids: Sequence[str],
    counts: Ints,
    kb: KnowledgeBase | None,
    *,
    grows: bool,
) -> Neighbourhood:
    """Read the graph of the entities of a text, given their frequencies.

    If the table ``grows``, the neighbours of its entities are appended, or with ``whole_graph`` all
    entities with an edge or a vector; neighbours outside the table are left out.
    """
    if kb is None or config.neighbours is None:
        raise ConfigError(
            "knowledge.neighbours: is read with the knowledge base it was built from; name it with "
            "--kb"
        )
    table = NeighbourTable.open(config.neighbours, kb)
    n_neighbours = config.layers[NEIGHBOURS].n_neighbours
    if n_neighbours > table.k:
        raise ConfigError(
            f"knowledge.layers.{NEIGHBOURS}.n_neighbours: {config.neighbours} has {table.k} of "
            f"each entity, found {n_neighbours}; build it again with -k {n_neighbours}"
        )
    rows = _rows_of(ids, kb)
    if grows:
        more = _connected(table, rows[rows >= 0], whole=config.whole_graph)
        more = np.union1d(more, _rows_with_vectors(config, kb))
        rows = np.concatenate([rows, np.setdiff1d(more, rows)])
    row_of = np.full(len(kb) + 1, -1, np.int64)  # the last one is for -1
    row_of[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
    edges = table.gather(rows, n_neighbours)
    neighbours = row_of[edges.neighbours]
    order = np.argsort(neighbours < 0, axis=1, kind="stable")  # no gaps
    neighbours, relations, directions = (
        np.take_along_axis(column.astype(np.int64), order, axis=1)
        for column in (neighbours, edges.relations, edges.directions)
    )
    missing = neighbours < 0
    names = [*ids, *(kb.id_at(int(row)) for row in rows[len(ids) :])]
    vectors, projections = _relations(config, kb)
    return Neighbourhood(
        tuple(names),
        EntityGraph(
            neighbours=neighbours,
            relations=np.where(missing, -1, relations),
            signs=np.where(missing, 0, _SIGNS[directions]),
            types=np.where(rows < 0, -1, first_types(kb)[rows]).astype(np.int64),
            counts=np.concatenate([counts, np.zeros(len(rows) - len(ids), np.int64)]),
            relation_vectors=vectors,
            projections=projections,
        ),
    )


def _rows_of(ids: Sequence[str], kb: KnowledgeBase) -> Ints:
    rows = [kb.find_row(identifier) for identifier in ids]
    if rows and all(row is None for row in rows):
        raise ConfigError(
            f"stream.shards: {kb.folder} knows none of its {len(ids):,} entities (first "
            f"{ids[0]!r}); name the knowledge base that the text was annotated with"
        )
    return np.array([-1 if row is None else row for row in rows], np.int64)


def _rows_with_vectors(config: KnowledgeConfig, kb: KnowledgeBase) -> Ints:
    """Return the rows of all concepts with a vector, with ``whole_graph``."""
    if config.vectors is None or not config.whole_graph:
        return np.zeros(0, np.int64)
    rows = (kb.find_row(identifier) for identifier in Embeddings.open(config.vectors).entity_ids)
    return np.array([row for row in rows if row is not None], np.int64)


def _connected(table: NeighbourTable, rows: Ints, *, whole: bool) -> Ints:
    """Return the rows of all concepts with an edge to these entities, or with any edge."""
    among = np.arange(len(table)) if whole else rows
    edges = table.gather(among)
    exists = edges.neighbours >= 0
    own = among[exists.any(axis=1)]
    connected: Ints = np.union1d(edges.neighbours[exists].astype(np.int64), own)
    return connected


def _relations(
    config: KnowledgeConfig, kb: KnowledgeBase
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return the vectors and projections of relations.

    TransE, and a table without vectors, have the identity as projection.
    """
    n_relations = len(kb.relation_names)
    if config.vectors is None:
        return np.zeros((n_relations, config.dim), np.float32), _identities(n_relations, config.dim)
    embeddings = Embeddings.open(config.vectors)
    if tuple(embeddings.relation_names[:n_relations]) != tuple(kb.relation_names):
        raise ConfigError(
            f"knowledge.vectors: {config.vectors} has other relations than {kb.folder}; embed the "
            "graph of this knowledge base"
        )
    tables = embeddings.tables
    vectors = np.array(tables.relation[:n_relations], np.float32)
    if len(tables.projection):
        return vectors, np.array(tables.projection[:n_relations], np.float32)
    return vectors, _identities(n_relations, tables.entity.shape[1])


def _identities(n_relations: int, dim: int) -> npt.NDArray[np.float32]:
    """Return identity projections."""
    return np.tile(np.eye(dim, dtype=np.float32), (n_relations, 1, 1))
