"""Sentence order prediction of ALBERT (Lan et al. 2020): classify swapped segments."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from biograft.errors import ConfigError
from biograft.training.objectives.base import (
    LabelledObjective,
    Loss,
    PairHead,
    TensorBatch,
    TextStates,
)
from biograft.training.objectives.configs import SentenceOrderConfig
from biograft.training.objectives.examples import (
    FOLLOWS,
    IGNORED,
    SPECIAL,
    Ints,
    Setting,
    TextExample,
)


def swap_segments(example: TextExample) -> TextExample:
    """Turn ``[CLS] A [SEP] B [SEP]`` into ``[CLS] B [SEP] A [SEP]``, labels included."""
    length = len(example.tokens)
    second = int(np.argmax(example.segments == 1))
    source = np.concatenate([[0], np.arange(second, length), np.arange(1, second)])
    target = np.argsort(source)  # the new position of each token
    spans = example.mentions.copy()
    spans[:, :2] = target[example.mentions[:, :2]]
    order = np.argsort(spans[:, 0])
    segments = np.zeros_like(example.segments)
    segments[1 + length - second :] = 1
    return replace(
        example,
        tokens=example.tokens[source],
        segments=segments,
        words=_renumber(example.words[source]),
        mentions=spans[order],
        token_labels={name: labels[source] for name, labels in example.token_labels.items()},
        mention_labels={name: labels[order] for name, labels in example.mention_labels.items()},
        fixed=None if example.fixed is None else example.fixed[source],
    )


def _renumber(words: Ints) -> Ints:
    """Number words in the order of their tokens."""
    ordinary = words != SPECIAL
    begins = ordinary & np.append(True, words[1:] != words[:-1])
    return np.where(ordinary, np.cumsum(begins) - 1, SPECIAL)


class SentenceOrder(LabelledObjective):
    """Classify the order of two segments of one text: 1 original, 0 swapped."""

    name = "sentence_order"
    labelled = ("labels", name)
    head: PairHead

    def __init__(self, config: SentenceOrderConfig, setting: Setting) -> None:
        self.config, self.head = config, PairHead(setting.width)

    def prepare(self, example: TextExample, rng: np.random.Generator) -> TextExample:
        """Swap the segments of some examples; a random next segment has no right order."""
        if not example.segments.any():
            raise ConfigError(
                "objective.sentence_order: a sequence has no second segment; set "
                "stream.two_segments = true and stream.pack = false"
            )
        swapped = bool(rng.random() < self.config.swap_probability)
        is_random = example.labels.get(FOLLOWS) == 0
        label = IGNORED if is_random else int(not swapped)
        example = swap_segments(example) if swapped and not is_random else example
        return replace(example, labels={**example.labels, self.name: label})

    def loss(self, states: TextStates, batch: TensorBatch) -> Loss:
        """Compute the mean over sequences whose segments are of one text."""
        return self.mean_loss(self.head(states.final), self.labels(batch), batch)
