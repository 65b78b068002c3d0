"""The base class of all training objectives, and what one forward pass gives to them.

An objective adds labels to examples (``prepare``), says over how many items of a batch its loss is
a mean (``count``) and computes the loss (``loss``). All objectives of a recipe share one forward
pass of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from biograft.errors import ConfigError
from biograft.objectives.examples import Ints, Setting, TextBatch, TextExample


@dataclass(frozen=True, slots=True)
class TextStates:
    """The output of a forward pass over a batch of text.

    Mentions are in the order of ``TextBatch.mentions``. The fields that are None by default need a
    model with knowledge layers.
    """

    final: Tensor
    """(sequences, length, width): the states of the last layer."""
    token_scores: Callable[[Tensor], Tensor]
    """The token head: states (n, width) to scores of the vocabulary (n, tokens)."""
    embeddings: Tensor | None = None
    """(tokens, width): the input embeddings of the vocabulary."""
    detection: Tensor | None = None
    """(sequences, length, 3): scores of O, B, I from the text-only states."""
    queries: Tensor | None = None
    """(mentions, dim): mentions in the space of entities."""
    table: Tensor | None = None
    """(entities, dim): the entity embeddings."""
    read_mentions: Callable[[Tensor, Tensor], Tensor] | None = None
    """Projects mentions into the space of entities: states (sequences, length, width) and mentions
    (mentions, 3) to (mentions, dim)."""

    def require(self, field: str, objective: str) -> Any:
        """Return a field that an objective needs; raise if the model does not compute it."""
        value = getattr(self, field)
        if value is None:
            raise ConfigError(f"objective.{objective}: {_MISSING[field]}, or remove the objective")
        return value


_TABLE = "the model has no entity table; give it a knowledge layer"
_MISSING = {
    "embeddings": "the model has no input embeddings; choose an encoder of BERT's kind",
    "detection": "the model does not detect mentions; give it the knowledge layer entity_memory",
    "queries": _TABLE,
    "table": _TABLE,
    "read_mentions": "the model does not read mentions from its last layer; give it the knowledge "
    "layer neighbour_attention or entity_fusion",
}


@dataclass(frozen=True, slots=True)
class TensorBatch:
    """A ``TextBatch`` as tensors of one device, with the same fields."""

    tokens: Tensor
    mask: Tensor
    segments: Tensor
    mentions: Tensor
    entities: Tensor
    token_labels: Mapping[str, Tensor]
    mention_labels: Mapping[str, Tensor]
    labels: Mapping[str, Tensor]

    @classmethod
    def of(cls, batch: TextBatch, device: torch.device | str = "cpu") -> TensorBatch:
        """Move a batch to a device."""

        def move(values: Ints) -> Tensor:
            return torch.from_numpy(values).to(device, non_blocking=True)

        def move_all(named: Mapping[str, Ints]) -> dict[str, Tensor]:
            return {name: move(values) for name, values in named.items()}

        return cls(
            tokens=move(batch.tokens),
            mask=move(batch.mask),
            segments=move(batch.segments),
            mentions=move(batch.mentions),
            entities=move(batch.entities),
            token_labels=move_all(batch.token_labels),
            mention_labels=move_all(batch.mention_labels),
            labels=move_all(batch.labels),
        )

    def __len__(self) -> int:
        return len(self.tokens)


Loss = tuple[Tensor, dict[str, float]]
"""A weighted loss, and its statistics by name."""


class LossTerm:
    """A loss that is one mean over the items of a batch."""

    def count(self, batch: Any) -> int:
        """Count the items over which the loss is a mean."""
        raise NotImplementedError

    def count_items(self, batch: Any) -> int:
        """Count the items over which the accuracy is a mean; by default as the loss."""
        return self.count(batch)

    def loss(self, states: Any, batch: Any) -> Loss:
        """Compute the loss of a batch and its statistics; both are 0 where nothing counts."""
        raise NotImplementedError


class Objective(LossTerm):
    """What a model is trained for.

    ``states`` and ``batch`` of ``loss`` are ``TextStates`` and ``TensorBatch`` for objectives of
    running text; those of name pairs and of generation state their own.
    """

    name: ClassVar[str]
    """The name in ``OBJECTIVES`` and in recipes."""
    order: ClassVar[int] = 0
    """Objectives with a lower number prepare an example first."""
    head: nn.Module | None = None
    """The parameters of the objective, trained with the model."""

    def __init__(self, config: Any, setting: Setting | None = None) -> None:
        self.config = config

    def prepare(self, example: TextExample, rng: np.random.Generator) -> TextExample:
        """Add labels to an example, or change its tokens; by default it stays as it is."""
        return example

    @property
    def terms(self) -> Mapping[str, LossTerm]:
        """The terms of the loss by name; by default the objective itself, without a name."""
        return {"": self}
