"""The rows of a large table that have the largest inner products with some vectors, exactly."""

from __future__ import annotations

import torch
from torch import Tensor

_AT_ONCE = 1 << 25
"""Scores computed at once: 128 MiB in 32 bits, so that a table may have millions of rows."""
_GROUP = 32
"""The best k are among the k groups with the best maximum; maxima are found quickly."""


@torch.no_grad()
def nearest_rows(queries: Tensor, table: Tensor, k: int) -> Tensor:
    """Find the k rows of largest inner product for each query: (queries, k), best first."""
    k = min(k, len(table))
    block = max(1, _AT_ONCE // max(1, len(table)))
    found = [largest(part @ table.T, k) for part in torch.split(queries, block)]
    return torch.cat(found) if found else queries.new_zeros((0, k), dtype=torch.long)


def largest(scores: Tensor, k: int) -> Tensor:
    """Find the columns of the k largest scores of each query: (queries, k), best first."""
    n_queries, n_rows = scores.shape
    n_groups = n_rows // _GROUP
    if n_groups <= 2 * k:
        return scores.topk(k, dim=1).indices
    grouped = scores[:, : n_groups * _GROUP].view(n_queries, n_groups, _GROUP)
    groups = grouped.amax(dim=2).topk(k, dim=1, sorted=False).indices  # (queries, k)
    rows = groups.unsqueeze(2) * _GROUP + torch.arange(_GROUP, device=scores.device)
    rest = torch.arange(n_groups * _GROUP, n_rows, device=scores.device).expand(n_queries, -1)
    rows = torch.cat([rows.flatten(1), rest], dim=1)  # (queries, candidates)
    return rows.gather(1, scores.gather(1, rows).topk(k, dim=1).indices)
