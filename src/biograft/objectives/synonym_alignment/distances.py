"""How near rows are: cosine, and the Euclidean distance of rows of length one."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from biograft.objectives.half_precision import in_single


def cosines(embeddings: Tensor) -> Tensor:
    """Give the cosine of every pair of rows, in at least single precision.

    Half precision cannot tell near names apart, and its sums overflow.
    """
    embeddings = in_single(embeddings)
    with torch.autocast(embeddings.device.type, enabled=False):
        rows = normalize(embeddings, dim=1)  # (rows, width)
        return rows @ rows.T  # (rows, rows)


def unit_distances(cosine: Tensor) -> Tensor:
    """Give the Euclidean distance of rows of length one from their cosine: sqrt(2 - 2 cos).

    The floor keeps the slope of the root finite where two names have the same vector.
    """
    return (2 - 2 * cosine).clamp_min(torch.finfo(cosine.dtype).eps ** 2).sqrt()
