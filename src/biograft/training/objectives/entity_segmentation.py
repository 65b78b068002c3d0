"""Entity segmentation of EMBERT (equations 4 and 5): predict where sub-entities end."""

from __future__ import annotations

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
from biograft.training.objectives.configs import EntitySegmentationConfig
from biograft.training.objectives.examples import (
    IGNORED,
    SEGMENT_ENDS,
    Setting,
    TextExample,
)


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


class EntitySegmentation(LabelledObjective):
    """Classify the tokens of long mentions, masked ones included: 1 ends a segment, 0 does not."""

    name = "entity_segmentation"
    labelled = ("token_labels", SEGMENT_ENDS)
    head: SegmentationHead

    def __init__(self, config: EntitySegmentationConfig, setting: Setting) -> None:
        self.config, self.head = config, SegmentationHead(setting.width)

    def prepare(self, example: TextExample, rng: np.random.Generator) -> TextExample:
        """Check that the stream labels segments; the example stays as it is."""
        if SEGMENT_ENDS not in example.token_labels:
            raise ConfigError(
                f"objective.{self.name}: the text has no segmented entities; set "
                "stream.segmentation to a folder of biograft corpus segment"
            )
        return example

    def loss(self, states: TextStates, batch: TensorBatch) -> Loss:
        """Compute the loss over the tokens of long mentions."""
        labels = self.labels(batch)
        counted = labels != IGNORED
        scores = self.head(states.final[counted])  # (labelled tokens, 2)
        return self.mean_loss(scores, labels[counted], batch)
