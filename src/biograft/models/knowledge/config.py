# mypy: allow-untyped-calls
# (configurations of transformers are built by functions without types)
"""The configuration of a BERT with knowledge layers in its stack."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from huggingface_hub.dataclasses import strict
from transformers import BertConfig

from biograft.errors import ConfigError
from biograft.models.knowledge_layers import FUSION, KnowledgeLayerConfig, read_layers

MODEL_IDENTITY = ("model_type", "architectures", "transformers_version")
"""The fields of a configuration that say which model it belongs to."""


@strict
class KnowledgeBertConfig(BertConfig):
    """The configuration of BERT, its knowledge layers and the entity table that they share."""

    model_type = "biograft-knowledge-bert"

    knowledge_layers: dict[str, dict[str, Any]] | None = None
    """The configuration of each knowledge layer by its name in ``KNOWLEDGE_LAYERS``, such as
    ``{"entity_memory": {"after": 8, "n_nearest": 100}}``. A layer behind all layers of BERT
    changes no state."""
    n_entities: int = 0
    """Rows of the entity table."""
    entity_dim: int = 100
    n_edges: int = 0
    """The most edges of an entity, for ``neighbour_attention``; 0: one to each neighbour."""
    freeze_entities: bool = False
    """Exclude the entity table from training."""

    def __post_init__(self, **kwargs: Any) -> None:
        """Check the fields that BERT's configuration does not have."""
        super().__post_init__(**kwargs)
        for name, bound in (("n_entities", 0), ("entity_dim", 1), ("n_edges", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < bound:
                raise ConfigError(f"{name}: expected at least {bound}, found {value!r}")
        layers = self.layer_configs()
        for name, layer in layers.items():
            if layer.after > self.num_hidden_layers:
                raise ConfigError(
                    f"knowledge_layers.{name}.after: expected 0 to {self.num_hidden_layers}, the "
                    f"layers of the model, found {layer.after}"
                )
            others = [
                other for other in layers if other != name and layers[other].after >= layer.after
            ]
            if name == FUSION and layer.after < self.num_hidden_layers and others:
                raise ConfigError(
                    f"knowledge_layers.{name}: it runs all layers that follow; expected "
                    f"{others[0]} before it, found it after {layers[others[0]].after} layers"
                )
        self.knowledge_layers = {name: asdict(layer) for name, layer in layers.items()}

    def layer_configs(self) -> dict[str, KnowledgeLayerConfig]:
        """Return the configurations of the knowledge layers by name, in the order they run."""
        return read_layers(self.knowledge_layers or {}, "knowledge_layers")
