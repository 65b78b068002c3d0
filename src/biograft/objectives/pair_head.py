"""A small head that tells two classes of a sequence from its first token, as BERT's does."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from biograft.objectives.fresh_weights import draw_weights


class PairHead(nn.Module):
    """tanh(dense) of the first token's state, then the scores of two classes."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense, self.classes = nn.Linear(width, width), nn.Linear(width, 2)
        draw_weights(self)

    def forward(self, states: Tensor) -> Tensor:
        """Give scores (sequences, 2) from the states (sequences, length, width)."""
        scores: Tensor = self.classes(torch.tanh(self.dense(states[:, 0])))
        return scores
