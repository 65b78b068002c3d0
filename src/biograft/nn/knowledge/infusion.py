"""The last linear layer of what is infused into tokens."""

from __future__ import annotations

from torch import nn
from transformers import initialization


class Infusion(nn.Linear):
    """A linear layer that can begin with zeros: then, untrained, it infuses nothing."""

    def __init__(self, n_in: int, n_out: int, *, neutral: bool) -> None:
        super().__init__(n_in, n_out)
        self.neutral = neutral

    def begin(self) -> None:
        """Set the weights to zero, if that is wanted; those that were loaded stay."""
        if self.neutral:
            initialization.zeros_(self.weight)
            initialization.zeros_(self.bias)
