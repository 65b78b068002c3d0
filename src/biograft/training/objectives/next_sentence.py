"""Next sentence prediction of BERT (Devlin et al. 2019): classify the second segment."""

from __future__ import annotations

import numpy as np

from biograft.errors import ConfigError
from biograft.training.objectives.base import (
    LabelledObjective,
    Loss,
    PairHead,
    TensorBatch,
    TextStates,
)
from biograft.training.objectives.configs import NextSentenceConfig
from biograft.training.objectives.examples import FOLLOWS, Setting, TextExample


class NextSentence(LabelledObjective):
    """Classify the second segment: 1 follows, 0 is a random one; the stream samples those."""

    name = "next_sentence"
    labelled = ("labels", FOLLOWS)
    head: PairHead

    def __init__(self, config: NextSentenceConfig, setting: Setting) -> None:
        self.config, self.head = config, PairHead(setting.width)

    def prepare(self, example: TextExample, rng: np.random.Generator) -> TextExample:
        """Check that the stream labels the second segment; the example stays as it is."""
        if FOLLOWS not in example.labels:
            raise ConfigError(
                "objective.next_sentence: the stream has no random next segments; set "
                "stream.two_segments = true, stream.pack = false and "
                "stream.random_next_probability = 0.5"
            )
        return example

    def loss(self, states: TextStates, batch: TensorBatch) -> Loss:
        """Compute the mean over labelled sequences."""
        scores = self.head(states.final)
        return self.mean_loss(scores, self.labels(batch), batch)
