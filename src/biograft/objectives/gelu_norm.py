"""The layer that EMBERT's heads are made of."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import gelu

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
