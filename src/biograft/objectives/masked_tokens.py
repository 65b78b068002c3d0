"""Which tokens are hidden together, and which of these are chosen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from torch import Tensor

from biograft.objectives.base import TensorBatch, TextStates
from biograft.objectives.configs import MaskedTokensConfig
from biograft.objectives.examples import IGNORED, SPECIAL, Ints, Setting, TextBatch, TextExample
from biograft.objectives.losses import labelled_cross_entropy


def number_units(example: TextExample, mode: str) -> Ints:
    """Give the number of the unit of each token, ascending from 0; ``SPECIAL`` where none.

    A unit is a token, a whole word, or a whole word or mention. A mention that begins or ends
    within a word makes one unit with that word.
    """
    words = example.words
    begins = np.ones(len(words), bool)
    if mode != "token":
        begins[1:] = words[1:] != words[:-1]
    if mode == "whole_entity":
        for first, last in example.mentions[:, :2]:
            begins[first + 1 : last + 1] = False
    ordinary = words != SPECIAL
    numbers = np.cumsum(begins & ordinary) - 1
    return np.where(ordinary, numbers, SPECIAL)


def leave_fixed(units: Ints, example: TextExample, mask: int, share: float) -> tuple[Ints, float]:
    """Give the units that are left to choose from, and which share of their tokens is wanted.

    A unit with a fixed token is none any more. What the mask hides of the fixed tokens counts as
    chosen: the less is wanted of the others.
    """
    if example.fixed is None or not example.fixed.any():
        return units, share
    left = np.where(np.isin(units, units[example.fixed]), SPECIAL, units)
    n_hidden = int((example.tokens[example.fixed] == mask).sum())
    wanted = share * int((units != SPECIAL).sum()) - n_hidden
    n_left = int((left != SPECIAL).sum())
    return left, min(1.0, max(0.0, wanted) / max(1, n_left))


def choose_units(sizes: Ints, share: float, draw: np.random.Generator) -> Ints:
    """Choose units of so many tokens at random; give their numbers.

    They are taken in random order until the share of the tokens is reached. The one with which it
    would be exceeded is taken with the chance (what is lacking) / (its size): so the share is
    exact in expectation for every sequence, whatever the sizes, and no unit is split.
    """
    order = draw.permutation(len(sizes))
    reached = np.cumsum(sizes[order])
    wanted = share * sizes.sum()
    n_whole = int(np.searchsorted(reached, wanted, side="right"))
    if n_whole < len(order):
        lacking = wanted - (reached[n_whole - 1] if n_whole else 0)
        n_whole += int(draw.random() * sizes[order[n_whole]] < lacking)
    return order[:n_whole]


NAME = "masked_tokens"


class MaskedTokens:
    """BERT's masked language modelling (KeBioLM's equations 7 and 8)."""

    def __init__(self, config: MaskedTokensConfig, setting: Setting) -> None:
        self.config, self.mask = config, setting.mask
        self._ordinary = np.setdiff1d(np.arange(setting.n_tokens), setting.special)
        shares = (config.mask_share, config.mask_share + config.random_share)
        self._bounds = np.array(shares) / config.chosen_share

    def prepare(self, example: TextExample, draw: np.random.Generator) -> TextExample:
        """Hide some tokens of an example; what they were becomes their label.

        What becomes of a chosen unit (masked, random, kept) is drawn once for all its tokens, so
        that no part of a hidden word or entity tells the rest. Tokens that are fixed stay as they
        are; those of them that are hidden already are a part of the share.
        """
        units = number_units(example, self.config.mode)
        units, share = leave_fixed(units, example, self.mask, self.config.chosen_share)
        sizes = np.bincount(units[units != SPECIAL])
        chosen = choose_units(sizes, share, draw)
        fates = np.full(len(sizes) + 1, IGNORED)  # the last one is for special tokens
        fates[chosen] = np.searchsorted(self._bounds, draw.random(len(chosen)), side="right")
        fate = fates[units]
        tokens, labels = example.tokens.copy(), np.full(len(units), IGNORED)
        labels[fate != IGNORED] = example.tokens[fate != IGNORED]
        tokens[fate == 0] = self.mask
        tokens[fate == 1] = draw.choice(self._ordinary, int((fate == 1).sum()))
        return replace(example, tokens=tokens, token_labels={**example.token_labels, NAME: labels})

    def count(self, batch: TextBatch) -> int:
        """Say how many tokens are to be foretold; the loss is the mean over these."""
        return int((batch.token_labels[NAME] != IGNORED).sum())

    def loss(self, states: TextStates, batch: TensorBatch) -> tuple[Tensor, dict[str, float]]:
        """Give the mean over labelled tokens; only these are scored against the vocabulary."""
        labels = batch.token_labels[NAME]
        counted = labels != IGNORED
        scores = states.token_scores(states.final[counted])  # (labelled tokens, vocabulary)
        loss, accuracy = labelled_cross_entropy(scores, labels[counted])
        return self.config.weight * loss, {"loss": float(loss.detach()), "accuracy": accuracy}
