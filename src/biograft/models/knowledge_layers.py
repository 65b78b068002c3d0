"""The configurations of knowledge layers, importable without torch.

A knowledge layer stands between the layers of a BERT and adds what is known of the entities that a
text mentions. ``KNOWLEDGE_LAYERS`` maps a name to the configuration of a layer, which names the
class that it configures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from biograft.config import AtLeast, Config, check_fields, from_mapping
from biograft.errors import ConfigError, nearest
from biograft.registry import Registry, load_object

MEMORY, FUSION, NEIGHBOURS = "entity_memory", "entity_fusion", "neighbour_attention"

KNOWLEDGE_LAYERS: Registry[Any] = Registry(
    "knowledge layer",
    {
        MEMORY: (
            "biograft.models.knowledge_layers:EntityMemoryConfig",
            "a mixture of the nearest entities of a mention, added to its tokens (KeBioLM)",
        ),
        FUSION: (
            "biograft.models.knowledge_layers:EntityFusionConfig",
            "the linked entities of mentions beside the upper layers, which read both (ERNIE)",
        ),
        NEIGHBOURS: (
            "biograft.models.knowledge_layers:NeighbourAttentionConfig",
            "the graph neighbours of the linked entity of a mention, fused into its tokens "
            "(SMedBERT)",
        ),
    },
    group="biograft.knowledge_layers",
)
"""Layers at the same position of the stack run in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeLayerConfig(Config):
    """Base of all knowledge layers: ``after`` counts the layers of the encoder before it."""

    implementation: ClassVar[str]
    """``module:class`` of the layer, imported when it is built."""
    takes_entity_inputs: ClassVar[bool] = False
    """Whether the layer needs the linked entities of mentions as inputs."""

    after: Annotated[int, AtLeast(0)]

    def build(self, model_config: Any) -> Any:
        """Build the layer for a model of this ``KnowledgeBertConfig``."""
        return load_object(self.implementation)(self, model_config)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityMemoryConfig(KnowledgeLayerConfig):
    """KeBioLM's entity memory: it detects mentions and mixes their ``n_nearest`` entities.

    These are searched in ``n_probed`` clusters of the table; 0: in the whole table, exactly. At
    most ``max_mentions`` of the detected mentions of a text are used; 0: all. With ``fusion_norm``
    a layer norm of every token follows the addition, as published weights expect. ``compat`` adds
    as the published code does, its errors included.
    """

    implementation: ClassVar[str] = "biograft.models.knowledge.layers:EntityMemory"

    after: Annotated[int, AtLeast(0)] = 8
    """Number of encoder layers before the memory."""
    n_nearest: Annotated[int, AtLeast(1)] = 100
    n_probed: Annotated[int, AtLeast(0)] = 0
    max_mentions: Annotated[int, AtLeast(0)] = 0
    fusion_norm: bool = False
    compat: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        if self.compat and self.n_probed:
            raise ConfigError(
                f"n_probed: expected 0 with compat, whose search is exact, found {self.n_probed}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityFusionConfig(KnowledgeLayerConfig):
    """ERNIE's knowledgeable encoder: the layers ``after`` which the entities are read, too.

    Entities attend to each other with ``n_heads``. With ``neutral_start`` an untrained layer
    changes nothing.
    """

    implementation: ClassVar[str] = "biograft.models.knowledge.layers:EntityFusion"
    takes_entity_inputs: ClassVar[bool] = True

    n_heads: Annotated[int, AtLeast(1)] = 4
    neutral_start: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourAttentionConfig(KnowledgeLayerConfig):
    """SMedBERT's attention from mentions to at most ``n_neighbours`` neighbours of their entities.

    A neighbour that is joined by two relations counts twice. ``type_attention`` weighs neighbours
    by their types, ``node_attention`` by the mention; without it all count the same. With
    ``neutral_start`` an untrained layer changes nothing.
    """

    implementation: ClassVar[str] = "biograft.models.knowledge.layers:NeighbourAttention"
    takes_entity_inputs: ClassVar[bool] = True

    n_neighbours: Annotated[int, AtLeast(1)] = 10
    type_attention: bool = True
    node_attention: bool = True
    neutral_start: bool = True


def read_layers(table: Mapping[str, Any], where: str) -> dict[str, KnowledgeLayerConfig]:
    """Read a table of layer configurations by name, in the order of ``KNOWLEDGE_LAYERS``.

    Args:
        table: Table of a recipe or a configuration.
        where: Its name in errors.
    """
    for name in table:
        if name not in KNOWLEDGE_LAYERS:
            raise ConfigError(
                f"{where}: no knowledge layer is called {name!r}; {nearest(name, KNOWLEDGE_LAYERS)}"
            )
    return {
        name: _read_layer(name, table[name], f"{where}.{name}")
        for name in KNOWLEDGE_LAYERS
        if name in table
    }


def _read_layer(name: str, values: Any, where: str) -> KnowledgeLayerConfig:
    if isinstance(values, KnowledgeLayerConfig):
        return values
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where}: expected a table, found {values!r}")
    config: KnowledgeLayerConfig = from_mapping(KNOWLEDGE_LAYERS.load(name), values, f"{where}.")
    return config
