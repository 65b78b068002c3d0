"""The knowledge layers there are, by name."""

from __future__ import annotations

from typing import Any

from biograft.errors import ConfigError, nearest
from biograft.registry import Registry

MEMORY, FUSION, NEIGHBOURS = "entity_memory", "entity_fusion", "neighbour_attention"

KNOWLEDGE_LAYERS: Registry[Any] = Registry(
    "knowledge layer",
    {
        MEMORY: (
            "biograft.nn.knowledge.entity_memory:EntityMemory",
            "the entities nearest to a mention, mixed and added to its tokens (KeBioLM)",
        ),
        FUSION: (
            "biograft.nn.knowledge.entity_fusion:EntityFusion",
            "the entity that a mention is linked to, put into its first token (ERNIE)",
        ),
        NEIGHBOURS: (
            "biograft.nn.knowledge.neighbour_attention:NeighbourAttention",
            "the neighbours of the entity that a mention is linked to, put into its tokens "
            "(SMedBERT)",
        ),
    },
)
"""Each is built of a configuration, and called with what is in ``Told``; of those at one place of
the stack the first one here acts first."""

TOLD_LAYERS = (FUSION, NEIGHBOURS)
"""Those that must be told which entities mentions are linked to; they find none themselves."""


def check_layer(name: str) -> None:
    """Refuse a name that is none of a knowledge layer."""
    if name not in KNOWLEDGE_LAYERS:
        raise ConfigError(
            f"no knowledge layer is called {name!r}; {nearest(name, KNOWLEDGE_LAYERS)}"
        )
