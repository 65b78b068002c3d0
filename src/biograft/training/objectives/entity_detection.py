"""Entity detection of KeBioLM (Yuan et al. 2021, equation 9): tag every token O, B or I."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from biograft.models.knowledge.layers import BEGIN, INSIDE, OUTSIDE
from biograft.training.objectives.base import (
    LabelledObjective,
    Loss,
    TensorBatch,
    TextStates,
)
from biograft.training.objectives.examples import TextExample


class EntityDetection(LabelledObjective):
    """Cross-entropy of tags over all tokens, special ones (O) included.

    The tags are predicted from the text-only states.
    """

    name = "entity_detection"
    labelled = ("token_labels", name)

    def prepare(self, example: TextExample, rng: np.random.Generator) -> TextExample:
        """Add the labels."""
        labels = np.full(len(example.tokens), OUTSIDE, np.int64)
        for first, last in example.mentions[:, :2]:
            labels[first + 1 : last + 1] = INSIDE
        labels[example.mentions[:, 0]] = BEGIN
        return replace(example, token_labels={**example.token_labels, self.name: labels})

    def loss(self, states: TextStates, batch: TensorBatch) -> Loss:
        """Compute the mean over all tokens except padding."""
        scores = states.require("detection", self.name).flatten(0, 1)
        return self.mean_loss(scores, self.labels(batch).flatten(), batch)
