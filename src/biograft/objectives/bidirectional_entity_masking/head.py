"""A token of a hidden part from the states at the ends of the other part, and from its place."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from biograft.objectives.gelu_norm import GeluNorm


class BoundaryHead(nn.Module):
    """Two layers LN(GELU(W .)) of [x_first ; x_last ; p] (EMBERT's equations 6 and 7)."""

    def __init__(self, width: int, position_dim: int, longest: int) -> None:
        super().__init__()
        self.position = nn.Embedding(longest, position_dim)
        self.inner = GeluNorm(2 * width + position_dim, width)
        self.outer = GeluNorm(width, width)

    def forward(self, first: Tensor, last: Tensor, place: Tensor) -> Tensor:
        """Give (tokens, width), to be compared with the vectors that tokens go in with.

        ``first`` and ``last`` (tokens, width) are the states at the ends of the part that is
        there, ``place`` (tokens,) says which token of the hidden part is asked for.
        """
        made: Tensor = self.outer(self.inner(torch.cat([first, last, self.position(place)], -1)))
        return made
