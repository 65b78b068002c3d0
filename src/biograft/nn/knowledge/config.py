# mypy: allow-untyped-calls
# (configurations of transformers are built by functions without types)
"""The configuration of a BERT that has knowledge layers within its stack."""

from __future__ import annotations

from typing import Any

from huggingface_hub.dataclasses import strict
from transformers import BertConfig

from biograft.errors import ConfigError
from biograft.nn.knowledge_layers import KNOWLEDGE_LAYERS, MEMORY, check_layer

NAMING = ("model_type", "architectures", "transformers_version")
"""Of a configuration: what says which model it is of."""


@strict
class KnowledgeBertConfig(BertConfig):
    """That of BERT, and which knowledge layers stand where."""

    model_type = "biograft-knowledge-bert"

    knowledge_after: dict[str, int] | int = 8
    """Behind how many layers of the stack each knowledge layer stands, by its name in
    ``KNOWLEDGE_LAYERS``; behind all of them it changes no state. A number is for
    ``entity_memory``."""
    n_entities: int = 0
    """Rows of the entity table, which all knowledge layers share."""
    entity_dim: int = 100
    freeze_entities: bool = False
    """Leave the entity table as it is."""

    n_nearest: int = 100
    """Of ``entity_memory``: how many entities a mention's vector is mixed from."""
    n_probed: int = 0
    """How many clusters of the table are looked into for them; 0: the whole table, exactly."""
    max_mentions: int = 0
    """How many of the mentions that the model itself finds are used of a text; 0: all."""
    fusion_norm: bool = False
    """Layer norm of every token after the addition, as published weights have it."""
    compat: bool = False
    """Add as the published code does, its slips included; see ``entity_memory``."""

    n_neighbours: int = 10
    """Of ``neighbour_attention``: how many neighbours of an entity its mention sees at most."""
    type_attention: bool = True
    """Weigh neighbours by their types, too."""
    node_attention: bool = True
    """Weigh neighbours by the mention; without it, all count the same."""
    told_share: float = 1.0
    """Which share of the mentions that are found in text the model is told."""
    neutral_start: bool = True
    """Begin with weights under which a told mention changes nothing (``neighbour_attention`` and
    ``entity_fusion``); else with drawn ones."""

    def __post_init__(self, **kwargs: Any) -> None:
        """Check the ranges of what BERT's configuration does not know."""
        super().__post_init__(**kwargs)
        if isinstance(self.knowledge_after, int):
            self.knowledge_after = {MEMORY: self.knowledge_after}
        least = {"n_entities": 0, "entity_dim": 1, "n_nearest": 1, "n_neighbours": 1}
        for name, bound in (least | {"n_probed": 0, "max_mentions": 0}).items():
            value = getattr(self, name)
            if not isinstance(value, int) or value < bound:
                raise ConfigError(f"{name}: expected at least {bound}, found {value!r}")
        if not 0 <= self.told_share <= 1:
            raise ConfigError(f"told_share: expected a share from 0 to 1, found {self.told_share}")
        if self.compat and self.n_probed:
            raise ConfigError(
                f"n_probed: the published code searches exactly; expected 0 with compat, found "
                f"{self.n_probed}"
            )
        for name, after in self.knowledge_after.items():
            check_layer(name)
            if not 0 <= after <= self.num_hidden_layers:
                raise ConfigError(
                    f"knowledge_after: expected 0 to {self.num_hidden_layers}, the layers there "
                    f"are, found {after} for {name}"
                )

    def layers_after(self, n_layers: int) -> list[str]:
        """Give the knowledge layers that stand behind so many layers, in the order they act."""
        after: Any = self.knowledge_after
        return [name for name in KNOWLEDGE_LAYERS if after.get(name) == n_layers]
