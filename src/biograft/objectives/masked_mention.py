"""The vectors with which the tokens of a hidden mention went into the starting model."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from biograft.errors import ConfigError
from biograft.objectives.base import TensorBatch, TextStates, mention_reader
from biograft.objectives.configs import MaskedMentionConfig
from biograft.objectives.examples import HIDDEN_BY, IGNORED, SHOWN, Setting, TextBatch, TextExample
from biograft.objectives.losses import count_reduced, in_single, reduced


class FirstEmbeddings(nn.Module):
    """A copy of the vectors of all tokens that stays as it is, whatever the model's become."""

    vectors: Tensor
    """(tokens, width)"""

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()
        self.vectors = nn.Parameter(vectors.detach().clone(), requires_grad=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Give (sequences, length, width) of tokens (sequences, length)."""
        with torch.no_grad():
            return embedding(tokens, self.vectors)


NAME = "masked_mention"


class MaskedMention:
    """SMedBERT's masked mention modelling (equations 12, 20 and 21).

    Mentions that are told their entities, which are hidden unless all are told, come near to what
    the same reader makes of the tokens that were there.
    """

    def __init__(self, config: MaskedMentionConfig, setting: Setting) -> None:
        if setting.embeddings is None:
            raise ConfigError(
                f"objective.{NAME}: the vectors of tokens of the starting model are not known; "
                "choose an encoder that has them, or take the objective out"
            )
        self.config, self.shown = config, setting.shown
        self.head = FirstEmbeddings(setting.embeddings)

    def prepare(self, example: TextExample, draw: np.random.Generator) -> TextExample:
        """Leave the example as it is: ``Showing`` says which mentions are told their entities."""
        return example

    def count(self, batch: TextBatch) -> int:
        """Say over how much the loss is a mean: mentions, or sequences."""
        return count_reduced(self.config.reduction, int(self._asked(batch).sum()), len(batch))

    def loss(self, states: TextStates, batch: TensorBatch) -> tuple[Tensor, dict[str, float]]:
        """Give the squared distances over mentions; 0 where there is none."""
        read = mention_reader(states, NAME)
        mentions = batch.mentions[self._asked(batch)]
        found = in_single(read(states.final, mentions))
        # Detached, lest both sides shrink together. Not under no_grad: within autocast the copies
        # of the reader's weights made there would be kept, and whoever reads next learn nothing.
        wanted = in_single(read(self.head(_original(batch)), mentions)).detach()
        losses = (found - wanted).square().sum(1)  # (mentions,)
        loss = reduced(self.config.reduction, losses, len(batch))
        return self.config.weight * loss, {"loss": float(loss.detach())}

    def _asked(self, batch: TextBatch | TensorBatch) -> Any:
        """Tell which mentions are foretold: of known entities that they were told."""
        known: Any = batch.entities >= 0
        if self.shown == "all":
            return known
        return known & (batch.mention_labels[SHOWN] != IGNORED)


def _original(batch: TensorBatch) -> Tensor:
    """Give the tokens as they were before some were hidden."""
    labels = batch.token_labels.get(HIDDEN_BY)
    return batch.tokens if labels is None else labels.where(labels != IGNORED, batch.tokens)
