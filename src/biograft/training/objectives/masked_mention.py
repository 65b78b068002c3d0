"""Masked mention modelling of SMedBERT (Zhang et al. 2021, equations 12, 20 and 21).

The vector of a masked mention is pulled towards that of its original tokens in the model that
training started from: a mean squared error, over mentions and the dimensions of their vectors.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from biograft.errors import ConfigError
from biograft.training.objectives.base import (
    Loss,
    Objective,
    ReducedTerm,
    TensorBatch,
    TextStates,
    to_float32,
)
from biograft.training.objectives.configs import MaskedMentionConfig
from biograft.training.objectives.examples import (
    ALL,
    IGNORED,
    MASKING_OBJECTIVE,
    MIXED,
    VISIBLE_ENTITIES,
    Setting,
    TextBatch,
    masked_mentions,
)


class FirstEmbeddings(nn.Module):
    """A frozen copy of the input embeddings of all tokens, as they were before training."""

    vectors: Tensor
    """(tokens, width)"""

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()
        self.vectors = nn.Parameter(vectors.detach().clone(), requires_grad=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map tokens (sequences, length) to (sequences, length, width)."""
        with torch.no_grad():
            return embedding(tokens, self.vectors)


class MaskedMention(ReducedTerm, Objective):
    """Pull masked mentions with visible entities towards the vectors of their original tokens.

    Where all entities are visible, it pulls all mentions.
    """

    name = "masked_mention"
    head: FirstEmbeddings

    def __init__(self, config: MaskedMentionConfig, setting: Setting) -> None:
        if setting.embeddings is None:
            raise ConfigError(
                f"objective.{self.name}: the input embeddings of the starting model are unknown; "
                "choose an encoder that has them, or remove the objective"
            )
        self.config, self.entity_visibility = config, setting.entity_visibility
        self.head = FirstEmbeddings(setting.embeddings)

    def count_items(self, batch: TextBatch) -> int:
        """Count the mentions."""
        return int(self._selected(batch).sum())

    def loss(self, states: TextStates, batch: TensorBatch) -> Loss:
        """Compute the mean squared error over mentions; 0 where there is none."""
        read = states.require("read_mentions", self.name)
        mentions = batch.mentions[self._selected(batch)]
        predicted = to_float32(read(states.final, mentions))
        # Detached, lest both sides shrink together. Not under no_grad: within autocast the copies
        # of the reader's weights made there would be cached, and later uses would get no gradient.
        wanted = to_float32(read(self.head(batch.original_tokens), mentions)).detach()
        squares = (predicted - wanted).square()  # (mentions, dim)
        losses = squares.mean(1) if self.config.reduction == "mse" else squares.sum(1)
        loss = self.reduce(losses, batch)
        return self.config.weight * loss, {"loss": float(loss.detach())}

    def _selected(self, batch: TextBatch | TensorBatch) -> Any:
        """Select the mentions that count: those of known entities that are visible and masked."""
        known: Any = batch.entities >= 0
        if self.entity_visibility == ALL:
            return known
        visible = batch.mention_labels[VISIBLE_ENTITIES] != IGNORED
        if self.entity_visibility == MIXED:
            visible &= masked_mentions(batch.token_labels[MASKING_OBJECTIVE], batch.mentions)
        return known & visible
