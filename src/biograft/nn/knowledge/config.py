# mypy: allow-untyped-calls
# (configurations of transformers are built by functions without types)
"""The configuration of a BERT that has a knowledge layer within its stack."""

from __future__ import annotations

from typing import Any

from huggingface_hub.dataclasses import strict
from transformers import BertConfig

from biograft.errors import ConfigError

NAMING = ("model_type", "architectures", "transformers_version")
"""Of a configuration: what says which model it is of."""


@strict
class KnowledgeBertConfig(BertConfig):
    """That of BERT, and which knowledge layer stands where."""

    model_type = "biograft-knowledge-bert"

    knowledge: str = "entity_memory"
    """Name of a knowledge layer in ``KNOWLEDGE_LAYERS``."""
    knowledge_after: int = 8
    """How many layers read the text alone; with all of them, knowledge changes no state."""
    n_entities: int = 0
    """Rows of the entity table."""
    entity_dim: int = 100
    n_nearest: int = 100
    """How many entities a mention's vector is mixed from."""
    n_probed: int = 0
    """How many clusters of the table are looked into for them; 0: the whole table, exactly."""
    max_mentions: int = 0
    """How many of the mentions that the model itself finds are used of a text; 0: all."""
    fusion_norm: bool = False
    """Layer norm of every token after the addition, as published weights have it."""
    compat: bool = False
    """Add as the published code does, its slips included; see ``entity_memory``."""
    freeze_entities: bool = False
    """Leave the entity table as it is."""

    def __post_init__(self, **kwargs: Any) -> None:
        """Check the ranges of what BERT's configuration does not know."""
        super().__post_init__(**kwargs)
        least = {"knowledge_after": 0, "n_entities": 0, "entity_dim": 1, "n_nearest": 1}
        for name, bound in (least | {"n_probed": 0, "max_mentions": 0}).items():
            value = getattr(self, name)
            if not isinstance(value, int) or value < bound:
                raise ConfigError(f"{name}: expected at least {bound}, found {value!r}")
        if self.compat and self.n_probed:
            raise ConfigError(
                f"n_probed: the published code searches exactly; expected 0 with compat, found "
                f"{self.n_probed}"
            )
        if self.knowledge_after > self.num_hidden_layers:
            raise ConfigError(
                f"knowledge_after: expected 0 to {self.num_hidden_layers}, the layers there are, "
                f"found {self.knowledge_after}"
            )
