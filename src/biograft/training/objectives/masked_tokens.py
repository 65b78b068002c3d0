"""Masked language modelling of tokens, whole words or whole entities (BERT; Devlin et al. 2019).

KeBioLM masks whole entities (Yuan et al. 2021, equations 7 and 8).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from biograft.training.objectives.base import (
    LabelledObjective,
    Loss,
    TensorBatch,
    TextStates,
)
from biograft.training.objectives.configs import MaskedTokensConfig
from biograft.training.objectives.examples import (
    IGNORED,
    SPECIAL,
    Ints,
    Setting,
    TextExample,
)


def unit_indices(example: TextExample, mode: str) -> Ints:
    """Number the masking units of the tokens, ascending from 0; ``SPECIAL`` where there is none.

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
    indices = np.cumsum(begins & ordinary) - 1
    return np.where(ordinary, indices, SPECIAL)


def exclude_fixed(units: Ints, example: TextExample, mask: int, ratio: float) -> tuple[Ints, float]:
    """Return the units that may be selected, and the ratio of their tokens to select.

    Units with a fixed token are excluded. Fixed tokens that are masked already count as selected,
    so fewer of the others are.
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
