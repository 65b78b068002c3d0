"""Two classes from the states on both sides of an entity."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from biograft.objectives.fresh_weights import draw_weights
from biograft.objectives.gelu_norm import GeluNorm


class ConsistencyHead(nn.Module):
    """W2 LN(GELU(W1 [x_before ; x_after])) (EMBERT's equations 1 and 2)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = GeluNorm(2 * width, width)
        self.classes = nn.Linear(width, 2, bias=False)
        draw_weights(self)

    def forward(self, before: Tensor, after: Tensor) -> Tensor:
        """Give scores (entities, 2) from the states (entities, width) just outside of each."""
        scores: Tensor = self.classes(self.inner(torch.cat([before, after], -1)))
        return scores
