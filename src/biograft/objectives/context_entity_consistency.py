"""Two classes from the states on both sides of an entity."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from biograft.errors import ConfigError
from biograft.objectives.base import TensorBatch, TextStates
from biograft.objectives.configs import ContextEntityConsistencyConfig
from biograft.objectives.examples import CONSISTENT, IGNORED, Setting, TextBatch, TextExample
from biograft.objectives.heads import GeluNorm, draw_weights
from biograft.objectives.losses import labelled_cross_entropy


class ConsistencyHead(nn.Module):
    """W2 LN(GELU(W1 [x_before ; x_after])) (EMBERT's equations 1 and 2)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = GeluNorm(2 * width, width)
        self.classes = nn.Linear(width, 2, bias=False)
        draw_weights(self)

    def forward(self, before: Tensor, after: Tensor) -> Tensor:
        """Give scores (entities, 2) from the states (entities, width) just outside of each."""
        scores: Tensor = self.classes(self.inner(torch.cat([before, after], -1)))
        return scores


NAME = "context_entity_consistency"


class ContextEntityConsistency:
    """EMBERT's first task; the stream replaces entities, since only it has the text.

    The states of the entity itself are left out: those of its neighbours, which may be the special
    tokens at the edges, must show it.
    """

    turn: ClassVar[int] = -2

    def __init__(self, config: ContextEntityConsistencyConfig, setting: Setting) -> None:
        self.config, self.head = config, ConsistencyHead(setting.width)

    def prepare(self, example: TextExample, draw: np.random.Generator) -> TextExample:
        """Let replaced entities stay readable: of a hidden one nothing could be told."""
        if CONSISTENT not in example.mention_labels:
            raise ConfigError(
                f"objective.{NAME}: no entity of the text is replaced; give the recipe a table "
                "[stream.replacement]"
            )
        replaced = np.flatnonzero(example.mention_labels[CONSISTENT] != IGNORED)
        return replace(example, fixed=example.fixed_with(replaced))

    def count(self, batch: TextBatch) -> int:
        """Say how many entities are replaced; the loss is the mean over these."""
        return int((batch.mention_labels[CONSISTENT] != IGNORED).sum())

    def loss(self, states: TextStates, batch: TensorBatch) -> tuple[Tensor, dict[str, float]]:
        """Give the mean over replaced entities: 1 is a synonym, 0 another entity."""
        labels = batch.mention_labels[CONSISTENT]
        counted = labels != IGNORED
        sequence, first, last = batch.mentions[counted].unbind(1)
        scores = self.head(states.final[sequence, first - 1], states.final[sequence, last + 1])
        loss, accuracy = labelled_cross_entropy(scores, labels[counted])
        return self.config.weight * loss, {"loss": float(loss.detach()), "accuracy": accuracy}
