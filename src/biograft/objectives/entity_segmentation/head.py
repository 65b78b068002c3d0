"""Two classes from the state of a token."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from biograft.objectives.fresh_weights import draw_weights
from biograft.objectives.gelu_norm import GeluNorm


class SegmentationHead(nn.Module):
    """W5 tanh(W3 LN(GELU(W4 x)) + b) (EMBERT's equation 4)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner, self.outer = GeluNorm(width, width), nn.Linear(width, width)
        self.classes = nn.Linear(width, 2, bias=False)
        draw_weights(self)

    def forward(self, states: Tensor) -> Tensor:
        """Give scores (tokens, 2) from states (tokens, width)."""
        scores: Tensor = self.classes(torch.tanh(self.outer(self.inner(states))))
        return scores
