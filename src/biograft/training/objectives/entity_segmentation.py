"""Entity segmentation of EMBERT (equations 4 and 5): predict where sub-entities end."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from biograft.errors import ConfigError
from biograft.training.objectives.base import (
    GeluNorm,
    Loss,
    Objective,
    TensorBatch,
    TextStates,
    count_reduced,
    init_weights,
    reduced_cross_entropy,
)
from biograft.training.objectives.configs import EntitySegmentationConfig
from biograft.training.objectives.examples import (
    IGNORED,
    SEGMENT_ENDS,
    Setting,
    TextBatch,
    TextExample,
)

NAME = "entity_segmentation"


class SegmentationHead(nn.Module):
    """W5 tanh(W3 LN(GELU(W4 x)) + b) (EMBERT's equation 4)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner, self.outer = GeluNorm(width, width), nn.Linear(width, width)
        self.classes = nn.Linear(width, 2, bias=False)
        init_weights(self)

    def forward(self, states: Tensor) -> Tensor:
        """Compute scores (tokens, 2) from states (tokens, width)."""
        scores: Tensor = self.classes(torch.tanh(self.outer(self.inner(states))))
        return scores


class EntitySegmentation(Objective):
    """Classify the tokens of long mentions, masked ones included: 1 ends a segment, 0 does not."""

    name = NAME
    head: SegmentationHead

    def __init__(self, config: EntitySegmentationConfig, setting: Setting) -> None:
        self.config, self.head = config, SegmentationHead(setting.width)

    def prepare(self, example: TextExample, rng: np.random.Generator) -> TextExample:
        """Check that the stream labels segments; the example stays as it is."""
        if SEGMENT_ENDS not in example.token_labels:
            raise ConfigError(
                f"objective.{NAME}: the text has no segmented entities; set "
                "stream.segmentation to a folder of biograft corpus segment"
            )
        return example

    def count(self, batch: TextBatch) -> int:
        """Count the tokens of long mentions, or sequences, as ``reduction`` says."""
        return count_reduced(self.config.reduction, self.count_items(batch), len(batch))

    def count_items(self, batch: TextBatch) -> int:
        """Count the tokens of long mentions."""
        return int((batch.token_labels[SEGMENT_ENDS] != IGNORED).sum())

    def loss(self, states: TextStates, batch: TensorBatch) -> Loss:
        """Compute the loss over the tokens of long mentions."""
        labels = batch.token_labels[SEGMENT_ENDS]
        counted = labels != IGNORED
        scores = self.head(states.final[counted])  # (labelled tokens, 2)
        loss, stats = reduced_cross_entropy(
            self.config.reduction, scores, labels[counted], len(batch)
        )
        return self.config.weight * loss, stats
