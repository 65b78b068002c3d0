"""Label every token O, B or I by the mentions, and learn it from the text-only states."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from torch import Tensor

from biograft.errors import ConfigError
from biograft.nn.knowledge.inputs import BEGIN, INSIDE, OUTSIDE
from biograft.objectives.base import TensorBatch, TextStates
from biograft.objectives.configs import EntityDetectionConfig
from biograft.objectives.examples import IGNORED, Setting, TextBatch, TextExample
from biograft.objectives.losses import labelled_cross_entropy

NAME = "entity_detection"


class EntityDetection:
    """KeBioLM's equation 9: cross-entropy over all tokens, special ones (O) included."""

    def __init__(self, config: EntityDetectionConfig, setting: Setting | None = None) -> None:
        self.config = config

    def prepare(self, example: TextExample, draw: np.random.Generator) -> TextExample:
        """Add the labels."""
        labels = np.full(len(example.tokens), OUTSIDE, np.int64)
        for first, last in example.mentions[:, :2]:
            labels[first + 1 : last + 1] = INSIDE
        labels[example.mentions[:, 0]] = BEGIN
        return replace(example, token_labels={**example.token_labels, NAME: labels})

    def count(self, batch: TextBatch) -> int:
        """Say how many tokens are labelled; the loss is the mean over these."""
        return int((batch.token_labels[NAME] != IGNORED).sum())

    def loss(self, states: TextStates, batch: TensorBatch) -> tuple[Tensor, dict[str, float]]:
        """Give the mean over all tokens that are no padding."""
        if states.detection is None:
            raise ConfigError(
                f"objective.{NAME}: the model has no detection of mentions; give it a knowledge "
                "layer, or take the objective out"
            )
        labels = batch.token_labels[NAME].flatten()
        loss, accuracy = labelled_cross_entropy(states.detection.flatten(0, 1), labels)
        return self.config.weight * loss, {"loss": float(loss.detach()), "accuracy": accuracy}
