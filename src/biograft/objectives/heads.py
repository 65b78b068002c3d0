"""Weights that the heads of objectives begin with."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

_SPREAD = 0.02
"""Deviation of new weights, as in BERT."""


def draw_weights(module: nn.Module) -> None:
    """Draw the matrices and tables of a head, the same whatever was made before; biases are 0."""
    generator = torch.Generator().manual_seed(0)
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=_SPREAD, generator=generator)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)


_EPSILON = 1e-12
"""As in BERT's layer norms."""


class GeluNorm(nn.Module):
    """LN(GELU(W x)), without a bias on W."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.dense, self.norm = nn.Linear(n_in, n_out, bias=False), nn.LayerNorm(n_out, _EPSILON)

    def forward(self, given: Tensor) -> Tensor:
        """Give (..., n_out) from (..., n_in)."""
        made: Tensor = self.norm(gelu(self.dense(given)))
        return made


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
