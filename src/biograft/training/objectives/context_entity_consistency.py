"""Context-entity consistency of EMBERT (equations 1 and 2): detect entities that do not fit.

The classifier reads the states on both sides of an entity.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from biograft.errors import ConfigError
from biograft.training.objectives.base import (
    GeluNorm,
    LabelledObjective,
    Loss,
    TensorBatch,
    TextStates,
    init_weights,
)
from biograft.training.objectives.configs import ContextEntityConsistencyConfig
from biograft.training.objectives.examples import (
    CONSISTENT,
    IGNORED,
    Setting,
    TextExample,
)


class ConsistencyHead(nn.Module):
    """W2 LN(GELU(W1 [x_before ; x_after])) (EMBERT's equations 1 and 2)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = GeluNorm(2 * width, width)
        self.classes = nn.Linear(width, 2, bias=False)
        init_weights(self)

    def forward(self, before: Tensor, after: Tensor) -> Tensor:
        """Compute scores (entities, 2) from the states (entities, width) just outside of each."""
        scores: Tensor = self.classes(self.inner(torch.cat([before, after], -1)))
        return scores


class ContextEntityConsistency(LabelledObjective):
    """Classify replaced entities: 1 is a synonym, 0 another entity; the stream replaces them.

    The states of the entity itself are not used: those of its neighbours, which may be the special
    tokens at the edges, must carry the answer.
    """

    name = "context_entity_consistency"
    labelled = ("mention_labels", CONSISTENT)
    order: ClassVar[int] = -2
    head: ConsistencyHead

    def __init__(self, config: ContextEntityConsistencyConfig, setting: Setting) -> None:
        self.config, self.head = config, ConsistencyHead(setting.width)

    def prepare(self, example: TextExample, rng: np.random.Generator) -> TextExample:
        """Exclude replaced entities from masking, because a masked one could not be classified."""
        if CONSISTENT not in example.mention_labels:
            raise ConfigError(
                f"objective.{self.name}: no entity of the text is replaced; give the recipe a "
                "table [stream.substitution]"
            )
        replaced = np.flatnonzero(example.mention_labels[CONSISTENT] != IGNORED)
        return replace(example, fixed=example.fixed_with(replaced))

    def loss(self, states: TextStates, batch: TensorBatch) -> Loss:
        """Compute the mean over replaced entities."""
        labels = self.labels(batch)
        counted = labels != IGNORED
        sequence, first, last = batch.mentions[counted].unbind(1)
        scores = self.head(states.final[sequence, first - 1], states.final[sequence, last + 1])
        return self.mean_loss(scores, labels[counted], batch)
