"""From the states of all tokens of a text to one vector."""

from __future__ import annotations

from collections.abc import Callable

import torch

from biograft.registry import Registry

Pooling = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""States (batch, tokens, dim) and mask (batch, tokens) in, vectors (batch, dim) out."""

POOLINGS: Registry[Pooling] = Registry(
    "pooling",
    {
        "cls": ("biograft.nn.pooling:pool_first", "the state of the first token (SapBERT)"),
        "mean": ("biograft.nn.pooling:pool_mean", "the mean of all tokens that are no padding"),
    },
)


def pool_first(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Take the state of the first token, before any pooler that the model may have."""
    return states[:, 0].float()  # (batch, dim)


def pool_mean(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Average the states of the tokens that are no padding; a text of no token gives zeros."""
    weights = mask.unsqueeze(-1).to(torch.float32)  # (batch, tokens, 1)
    return (states.float() * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)
