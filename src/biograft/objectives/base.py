"""What one forward pass gives to all objectives of running text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from biograft.errors import ConfigError
from biograft.objectives.examples import Ints, TextBatch


@dataclass(frozen=True, slots=True)
class TextStates:
    """The states of a batch, and what a knowledge layer made of its mentions.

    Mentions are in the order of ``TextBatch.mentions``.
    """

    final: Tensor
    """(sequences, length, width): the last layer."""
    token_scores: Callable[[Tensor], Tensor]
    """The token head: states (n, width) to scores of the vocabulary (n, tokens)."""
    embeddings: Tensor | None = None
    """(tokens, width): the vectors with which the tokens of the vocabulary go in."""
    detection: Tensor | None = None
    """(sequences, length, 3): scores of O, B, I from the text-only states."""
    queries: Tensor | None = None
    """(mentions, dim): mentions in the space of entities."""
    table: Tensor | None = None
    """(entities, dim): the vectors of all entities."""
    read_mentions: Callable[[Tensor, Tensor], Tensor] | None = None
    """Reads mentions in the space of entities: states (sequences, length, width) and mentions
    (mentions, 3) to (mentions, dim)."""


@dataclass(frozen=True, slots=True)
class TensorBatch:
    """A ``TextBatch`` as tensors of one device; the fields mean the same."""

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
        """Bring a batch to a device."""

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


def mention_reader(states: TextStates, objective: str) -> Callable[[Tensor, Tensor], Tensor]:
    """Give what reads mentions from states in the space of entities."""
    if states.read_mentions is None:
        raise ConfigError(
            f"objective.{objective}: the model does not read mentions from its last layer; give "
            "it the knowledge layer neighbour_attention or entity_fusion, or take the objective out"
        )
    return states.read_mentions


def entity_table(states: TextStates, objective: str) -> Tensor:
    """Give the vectors of all entities."""
    if states.table is None:
        raise ConfigError(
            f"objective.{objective}: the model has no table of entities; give it a knowledge "
            "layer, or take the objective out"
        )
    return states.table
