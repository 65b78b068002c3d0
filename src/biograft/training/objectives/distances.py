"""Distances between vectors, row by row: cosine, Euclidean, and hyperbolic in the Poincaré ball."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from biograft.training.objectives.base import to_float32

_MAX_NORM = 1 - 1e-5
"""Distances in the ball grow without bound towards its edge."""


def cosine_distances(left: Tensor, right: Tensor) -> Tensor:
    """Compute 1 - cos of each pair of rows: (rows,).

    Args:
        left: (rows, width)
        right: (rows, width)
    """
    cosines: Tensor = cosine_similarity(to_float32(left), to_float32(right))
    return 1 - cosines


def euclidean_distances(left: Tensor, right: Tensor) -> Tensor:
    """Compute the Euclidean distance of each pair of rows: (rows,).

    Args:
        left: (rows, width)
        right: (rows, width)
    """
    return (to_float32(left) - to_float32(right)).square().sum(1).clamp_min(1e-12).sqrt()


def into_ball(vectors: Tensor) -> Tensor:
    """Map vectors into the open unit ball: x tanh(|x| / sqrt(width)) / |x|, the exponential map.

    Args:
        vectors: (rows, width)
    """
    vectors = to_float32(vectors)
    norms = torch.linalg.vector_norm(vectors, dim=1, keepdim=True).clamp_min(1e-7)
    lengths: Tensor = (norms / vectors.shape[1] ** 0.5).tanh().clamp_max(_MAX_NORM)
    unit: Tensor = vectors / norms
    return unit * lengths


def poincare_distances(left: Tensor, right: Tensor) -> Tensor:
    """Compute arcosh(1 + 2 |a - b|^2 / ((1 - |a|^2)(1 - |b|^2))) of each pair of rows: (rows,).

    Args:
        left: Rows within the unit ball: (rows, width).
        right: As ``left``.
    """
    squared = (left - right).square().sum(1)
    room = (1 - left.square().sum(1)) * (1 - right.square().sum(1))
    x = 2 * squared / room
    # arcosh(1 + x), whose root has no gradient at 0
    distances: Tensor = torch.log1p(x + (x * (x + 2)).clamp_min(1e-12).sqrt())
    return distances
