"""Weights that the heads of objectives begin with."""

from __future__ import annotations

import torch
from torch import nn

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
