"""Hide tokens, and foretell them from the last layer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from torch import Tensor

from biograft.objectives.cross_entropy import labelled_cross_entropy
from biograft.objectives.masked_tokens.choosing import choose_units, leave_fixed, number_units
from biograft.objectives.masked_tokens.config import MaskedTokensConfig
from biograft.objectives.records import IGNORED, SPECIAL, TextBatch, TextExample
from biograft.objectives.setting import Setting
from biograft.objectives.states import TensorBatch, TextStates

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
