"""The knowledge layers there are, by name."""

from __future__ import annotations

from typing import Any

from biograft.registry import Registry

KNOWLEDGE_LAYERS: Registry[Any] = Registry(
    "knowledge layer",
    {
        "entity_memory": (
            "biograft.nn.knowledge.entity_memory:EntityMemory",
            "the entities nearest to a mention, mixed and added to its tokens (KeBioLM)",
        ),
    },
)
"""Each is built of a configuration, and called with states, mask and mentions."""
