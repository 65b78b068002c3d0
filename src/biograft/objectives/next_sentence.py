"""Tell whether the second part of a sequence follows the first, or is of another document."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from biograft.errors import ConfigError
from biograft.objectives.base import TensorBatch, TextStates
from biograft.objectives.configs import NextSentenceConfig
from biograft.objectives.examples import FOLLOWS, IGNORED, Setting, TextBatch, TextExample
from biograft.objectives.heads import PairHead
from biograft.objectives.losses import labelled_cross_entropy


class NextSentence:
    """BERT's second task; the stream exchanges the parts, since only it has other documents."""

    def __init__(self, config: NextSentenceConfig, setting: Setting) -> None:
        self.config, self.head = config, PairHead(setting.width)

    def prepare(self, example: TextExample, draw: np.random.Generator) -> TextExample:
        """See that the example says whether its parts belong together."""
        if FOLLOWS not in example.labels:
            raise ConfigError(
                "objective.next_sentence: no second part is a stranger's; set "
                "stream.two_segments = true, stream.pack = false and stream.strangers = 0.5"
            )
        return example

    def count(self, batch: TextBatch) -> int:
        """Say how many sequences are asked about; the loss is the mean over these."""
        return int((batch.labels[FOLLOWS] != IGNORED).sum())

    def loss(self, states: TextStates, batch: TensorBatch) -> tuple[Tensor, dict[str, float]]:
        """Give the mean over sequences: 1 follows, 0 does not."""
        scores = self.head(states.final)
        loss, accuracy = labelled_cross_entropy(scores, batch.labels[FOLLOWS])
        return self.config.weight * loss, {"loss": float(loss.detach()), "accuracy": accuracy}
