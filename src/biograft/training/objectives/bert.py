"""Objectives of BERT and ALBERT: masked tokens, next sentences, the order of sentences.

Masked tokens (Devlin et al. 2019) are single ones, whole words, or the whole entities of KeBioLM
(Yuan et al. 2021, equations 7 and 8). Next sentence prediction is BERT's, sentence order
prediction ALBERT's (Lan et al. 2020).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from biograft.arrays import Ints
from biograft.errors import ConfigError
from biograft.training.objectives.base import (
    LabelledObjective,
    Loss,
    PairHead,
    TensorBatch,
    TextStates,
)
from biograft.training.objectives.configs import (
    MaskedTokensConfig,
    NextSentenceConfig,
    SentenceOrderConfig,
)
from biograft.training.objectives.examples import (
    FOLLOWS,
    IGNORED,
    SPECIAL,
    Setting,
    TextExample,
    splice,
)


def unit_indices(example: TextExample, mode: str) -> Ints:
    """Number the masking units of the tokens, ascending from 0; ``SPECIAL`` where there is none.

    A unit is a token, a whole word, or a whole word or mention. A mention that begins or ends
    within a word makes one unit with that word.

    Args:
        example: The example.
        mode: ``token``, ``whole_word`` or ``whole_entity``.
    """
    words = example.words
    begins = np.ones(len(words), bool)
    if mode != "token":
        begins[1:] = words[1:] != words[:-1]
    if mode == "whole_entity":
        for first, last in example.mentions[:, :2]:
            begins[first + 1 : last + 1] = False
    ordinary = words != SPECIAL
    indices = np.cumsum(begins & ordinary) - 1
    return np.where(ordinary, indices, SPECIAL)


def exclude_fixed(units: Ints, example: TextExample, mask: int, ratio: float) -> tuple[Ints, float]:
    """Return the units that may be selected, and the ratio of their tokens to select.

    Units with a fixed token are excluded. Fixed tokens that are masked already count as selected,
    so fewer of the others are.

    Args:
        units: Unit of each token that is selected as a whole, ``SPECIAL``: none.
        example: The example.
        mask: Id of the mask token.
        ratio: Ratio of tokens to select.
    """
    if example.fixed is None or not example.fixed.any():
        return units, ratio
    free = np.where(np.isin(units, units[example.fixed]), SPECIAL, units)
    n_masked = int((example.tokens[example.fixed] == mask).sum())
    n_wanted = ratio * int((units != SPECIAL).sum()) - n_masked
    n_free = int((free != SPECIAL).sum())
    return free, min(1.0, max(0.0, n_wanted) / max(1, n_free))


def choose_units(sizes: Ints, ratio: float, rng: np.random.Generator) -> Ints:
    """Choose units of these sizes in tokens at random; return their numbers.

    Units are taken in random order until the ratio of tokens is reached. The one that would exceed
    it is taken with probability (missing tokens) / (its size). So the expected ratio is exact for
    every sequence, whatever the sizes, and no unit is split.

    Args:
        sizes: Tokens in each unit.
        ratio: Ratio of tokens to choose.
        rng: Random numbers.
    """
    order = rng.permutation(len(sizes))
    reached = np.cumsum(sizes[order])
    wanted = ratio * sizes.sum()
    n_whole = int(np.searchsorted(reached, wanted, side="right"))
    if n_whole < len(order):
        missing = wanted - (reached[n_whole - 1] if n_whole else 0)
        n_whole += int(rng.random() * sizes[order[n_whole]] < missing)
    return order[:n_whole]


class MaskedTokens(LabelledObjective):
    """Predict masked tokens: cross-entropy over the vocabulary."""

    name = "masked_tokens"
    labelled = ("token_labels", name)

    def __init__(self, config: MaskedTokensConfig, setting: Setting) -> None:
        self.config, self.mask = config, setting.mask
        self._ordinary = np.setdiff1d(np.arange(setting.n_tokens), setting.special)
        ratios = (config.mask_ratio, config.mask_ratio + config.random_ratio)
        self._bounds = np.array(ratios) / config.selected_ratio

    def prepare(self, example: TextExample, rng: np.random.Generator) -> TextExample:
        """Mask some tokens of an example; their labels are the original tokens.

        Whether a selected unit is masked, replaced at random or kept is sampled once for all its
        tokens, so that no part of a masked word or entity reveals the rest. Fixed tokens stay
        unchanged; those that are masked already count towards the ratio.
        """
        units = unit_indices(example, self.config.mode)
        units, ratio = exclude_fixed(units, example, self.mask, self.config.selected_ratio)
        sizes = np.bincount(units[units != SPECIAL])
        chosen = choose_units(sizes, ratio, rng)
        actions = np.full(len(sizes) + 1, IGNORED)  # the last one is for special tokens
        actions[chosen] = np.searchsorted(self._bounds, rng.random(len(chosen)), side="right")
        action = actions[units]
        tokens, labels = example.tokens.copy(), np.full(len(units), IGNORED)
        labels[action != IGNORED] = example.tokens[action != IGNORED]
        tokens[action == 0] = self.mask
        tokens[action == 1] = rng.choice(self._ordinary, int((action == 1).sum()))
        return replace(
            example, tokens=tokens, token_labels={**example.token_labels, self.name: labels}
        )

    def loss(self, states: TextStates, batch: TensorBatch) -> Loss:
        """Compute the mean over labelled tokens; only these are scored."""
        labels = self.labels(batch)
        counted = labels != IGNORED
        scores = states.token_scores(states.final[counted])  # (labelled tokens, vocabulary)
        return self.mean_loss(scores, labels[counted], batch)


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


def swap_segments(example: TextExample) -> TextExample:
    """Turn ``[CLS] A [SEP] B [SEP]`` into ``[CLS] B [SEP] A [SEP]``, labels included."""
    n, second = len(example.tokens), int(np.argmax(example.segments == 1))
    spans = ((0, 1), (second, n), (1, second))
    return splice([(example, *span) for span in spans], 1 + n - second)


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
