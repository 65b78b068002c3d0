"""Classification heads of objectives, and the initialisation of their weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

_STD = 0.02
"""Standard deviation of new weights, as in BERT."""
_EPSILON = 1e-12
"""As in BERT's layer norms."""


def init_weights(module: nn.Module) -> None:
    """Initialise a head with a generator of its own, so other weights change nothing."""
    generator = torch.Generator().manual_seed(0)
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=_STD, generator=generator)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)


class GeluNorm(nn.Module):
    """LN(GELU(W x)), without a bias on W."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.dense, self.norm = nn.Linear(n_in, n_out, bias=False), nn.LayerNorm(n_out, _EPSILON)

    def forward(self, inputs: Tensor) -> Tensor:
        """Map (..., n_in) to (..., n_out)."""
        outputs: Tensor = self.norm(gelu(self.dense(inputs)))
        return outputs


class PairHead(nn.Module):
    """tanh(dense) of the first token's state, then the scores of two classes."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense, self.classes = nn.Linear(width, width), nn.Linear(width, 2)
        init_weights(self)

    def forward(self, states: Tensor) -> Tensor:
        """Compute scores (sequences, 2) from the states (sequences, length, width)."""
        scores: Tensor = self.classes(torch.tanh(self.dense(states[:, 0])))
        return scores
