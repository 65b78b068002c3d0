"""Two classes from the state of a token."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from biograft.errors import ConfigError
from biograft.objectives.base import TensorBatch, TextStates
from biograft.objectives.configs import EntitySegmentationConfig
from biograft.objectives.examples import IGNORED, PIECE_ENDS, Setting, TextBatch, TextExample
from biograft.objectives.heads import GeluNorm, draw_weights
from biograft.objectives.losses import count_reduced, reduced_cross_entropy


class SegmentationHead(nn.Module):
    """W5 tanh(W3 LN(GELU(W4 x)) + b) (EMBERT's equation 4)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner, self.outer = GeluNorm(width, width), nn.Linear(width, width)
        self.classes = nn.Linear(width, 2, bias=False)
        draw_weights(self)

    def forward(self, states: Tensor) -> Tensor:
        """Give scores (tokens, 2) from states (tokens, width)."""
        scores: Tensor = self.classes(torch.tanh(self.outer(self.inner(states))))
        return scores


NAME = "entity_segmentation"


class EntitySegmentation:
    """EMBERT's second task (equations 4 and 5), hidden tokens included; others do not count."""

    def __init__(self, config: EntitySegmentationConfig, setting: Setting) -> None:
        self.config, self.head = config, SegmentationHead(setting.width)

    def prepare(self, example: TextExample, draw: np.random.Generator) -> TextExample:
        """See that the example says where sub-entities end."""
        if PIECE_ENDS not in example.token_labels:
            raise ConfigError(
                f"objective.{NAME}: no entity of the text is known in pieces; set "
                "stream.segmentation to a folder of biograft corpus segment"
            )
        return example

    def count(self, batch: TextBatch) -> int:
        """Say over how much the loss is a mean: the tokens of long entities, or sequences."""
        return count_reduced(self.config.reduction, self.count_items(batch), len(batch))

    def count_items(self, batch: TextBatch) -> int:
        """Say over how many tokens the accuracy is a share."""
        return int((batch.token_labels[PIECE_ENDS] != IGNORED).sum())

    def loss(self, states: TextStates, batch: TensorBatch) -> tuple[Tensor, dict[str, float]]:
        """Give the loss over the tokens of long entities: 1 ends a sub-entity, 0 does not."""
        labels = batch.token_labels[PIECE_ENDS]
        counted = labels != IGNORED
        scores = self.head(states.final[counted])  # (labelled tokens, 2)
        loss, stats = reduced_cross_entropy(
            self.config.reduction, scores, labels[counted], len(batch)
        )
        return self.config.weight * loss, stats
