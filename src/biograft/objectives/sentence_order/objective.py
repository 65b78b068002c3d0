"""Swap the two parts of some sequences, and tell which those are (ALBERT; SMedBERT uses it)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from torch import Tensor

from biograft.errors import ConfigError
from biograft.objectives.cross_entropy import labelled_cross_entropy
from biograft.objectives.pair_head import PairHead
from biograft.objectives.records import FOLLOWS, IGNORED, TextBatch, TextExample
from biograft.objectives.sentence_order.config import SentenceOrderConfig
from biograft.objectives.sentence_order.swapping import swap_segments
from biograft.objectives.setting import Setting
from biograft.objectives.states import TensorBatch, TextStates

NAME = "sentence_order"


class SentenceOrder:
    """Whether two parts of one text stand in their order (1) or swapped (0)."""

    def __init__(self, config: SentenceOrderConfig, setting: Setting) -> None:
        self.config, self.head = config, PairHead(setting.width)

    def prepare(self, example: TextExample, draw: np.random.Generator) -> TextExample:
        """Swap the parts of some; where the second is a stranger's there is no right order."""
        if not example.segments.any():
            raise ConfigError(
                "objective.sentence_order: a sequence has no second part; set "
                "stream.two_segments = true and stream.pack = false"
            )
        swapped = bool(draw.random() < self.config.swapped_share)
        strange = example.labels.get(FOLLOWS) == 0
        label = IGNORED if strange else int(not swapped)
        example = swap_segments(example) if swapped and not strange else example
        return replace(example, labels={**example.labels, NAME: label})

    def count(self, batch: TextBatch) -> int:
        """Say how many sequences are asked about; the loss is the mean over these."""
        return int((batch.labels[NAME] != IGNORED).sum())

    def loss(self, states: TextStates, batch: TensorBatch) -> tuple[Tensor, dict[str, float]]:
        """Give the mean over sequences whose parts are of one text."""
        loss, accuracy = labelled_cross_entropy(self.head(states.final), batch.labels[NAME])
        return self.config.weight * loss, {"loss": float(loss.detach()), "accuracy": accuracy}
