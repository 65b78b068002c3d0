"""A small head that tells two classes of a sequence from its first token, as BERT's does."""

from __future__ import annotations

import torch
from torch import Tensor, nn

_SPREAD = 0.02
"""Deviation of new weights, as in BERT."""


class PairHead(nn.Module):
    """tanh(dense) of the first token's state, then the scores of two classes."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense, self.classes = nn.Linear(width, width), nn.Linear(width, 2)
        generator = torch.Generator().manual_seed(0)  # the same head whatever was made before
        for layer in (self.dense, self.classes):
            nn.init.normal_(layer.weight, std=_SPREAD, generator=generator)
            nn.init.zeros_(layer.bias)

    def forward(self, states: Tensor) -> Tensor:
        """Give scores (sequences, 2) from the states (sequences, length, width)."""
        scores: Tensor = self.classes(torch.tanh(self.dense(states[:, 0])))
        return scores
