"""Exchange the two parts of a sequence, with all that is known of their tokens."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from torch import Tensor

from biograft.errors import ConfigError
from biograft.objectives.base import TensorBatch, TextStates
from biograft.objectives.configs import SentenceOrderConfig
from biograft.objectives.examples import (
    FOLLOWS,
    HEAD_START,
    IGNORED,
    SPECIAL,
    Ints,
    Setting,
    TextBatch,
    TextExample,
)
from biograft.objectives.heads import PairHead
from biograft.objectives.losses import labelled_cross_entropy


def swap_segments(example: TextExample) -> TextExample:
    """Make ``[CLS] B [SEP] A [SEP]`` of ``[CLS] A [SEP] B [SEP]``."""
    length = len(example.tokens)
    second = int(np.argmax(example.segments == 1))
    source = np.concatenate([[0], np.arange(second, length), np.arange(1, second)])
    moved = np.argsort(source)  # where each token stands now
    spans = example.mentions.copy()
    spans[:, :2] = moved[example.mentions[:, :2]]
    order = np.argsort(spans[:, 0])
    mention_labels = {name: labels[order] for name, labels in example.mention_labels.items()}
    if HEAD_START in mention_labels:  # these are places
        starts = mention_labels[HEAD_START]
        mention_labels[HEAD_START] = np.where(starts == IGNORED, IGNORED, moved[starts.clip(0)])
    segments = np.zeros_like(example.segments)
    segments[1 + length - second :] = 1
    return replace(
        example,
        tokens=example.tokens[source],
        segments=segments,
        words=_renumber(example.words[source]),
        mentions=spans[order],
        token_labels={name: labels[source] for name, labels in example.token_labels.items()},
        mention_labels=mention_labels,
        fixed=None if example.fixed is None else example.fixed[source],
    )


def _renumber(words: Ints) -> Ints:
    """Number words in the order of their tokens."""
    ordinary = words != SPECIAL
    begins = ordinary & np.append(True, words[1:] != words[:-1])
    return np.where(ordinary, np.cumsum(begins) - 1, SPECIAL)


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
