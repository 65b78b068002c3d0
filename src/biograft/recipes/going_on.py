"""Going on from a model that has knowledge layers: what is in them must be what a recipe names."""

from __future__ import annotations

from typing import Any

import numpy as np

from biograft.errors import ConfigError
from biograft.graph.embedding import Embeddings
from biograft.nn.knowledge_layers import NEIGHBOURS
from biograft.objectives.graph import GraphOfEntities
from biograft.recipes.knowledge import KnowledgeConfig


def check_contents(
    name: str, lm: Any, config: KnowledgeConfig, graph: GraphOfEntities | None
) -> None:
    """Refuse other vectors than a frozen table was made of, and other neighbours."""
    if config.freeze and config.vectors is not None and not _has_vectors(lm, config):
        raise ConfigError(
            f"knowledge.vectors: the frozen table of {name} holds other vectors than "
            f"{config.vectors}; name those it was made with, or begin from a plain BERT"
        )
    if graph is not None and not _has_neighbours(lm, graph):
        raise ConfigError(
            f"knowledge.neighbours: {name} sees other neighbours than those of "
            f"{config.neighbours}; name those it was made with, or begin from a plain BERT"
        )


def _has_vectors(lm: Any, config: KnowledgeConfig) -> bool:
    """Whether all entities that the vectors have, and at least one, have these in the table."""
    embeddings = Embeddings.open(str(config.vectors))
    given = embeddings.tables.entity
    table = lm.model.entity_table.weight.detach().cpu().float().numpy()
    place = {identifier: row for row, identifier in enumerate(embeddings.entity_ids)}
    rows = np.fromiter((place.get(entity.id, -1) for entity in lm.entities), np.int64)
    known = rows >= 0
    if not known.any() or given.shape[1] != table.shape[1]:
        return False
    return np.allclose(table[known], given[rows[known]])


def _has_neighbours(lm: Any, graph: GraphOfEntities) -> bool:
    layer = lm.model.knowledge[NEIGHBOURS]
    return bool(
        np.array_equal(layer.neighbours.cpu().numpy(), graph.neighbours)
        and np.array_equal(layer.types.cpu().numpy(), graph.types)
    )
