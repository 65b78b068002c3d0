"""The vectors with which the tokens of a hidden mention went into the starting model."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding


class FirstEmbeddings(nn.Module):
    """A copy of the vectors of all tokens that stays as it is, whatever the model's become."""

    vectors: Tensor
    """(tokens, width)"""

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()
        self.vectors = nn.Parameter(vectors.detach().clone(), requires_grad=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Give (sequences, length, width) of tokens (sequences, length)."""
        with torch.no_grad():
            return embedding(tokens, self.vectors)
