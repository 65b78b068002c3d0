"""Nearest neighbour search in the entity table by inner product, exact or in clusters."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

_BLOCK_SCORES = 1 << 25
"""Scores computed at once: 128 MiB in 32 bits, so that a table may have millions of rows."""
_GROUP = 32
"""The best k are among the k groups with the best maximum; maxima are fast to compute."""


@torch.no_grad()
def nearest_rows(queries: Tensor, table: Tensor, k: int) -> Tensor:
    """Find the k rows of largest inner product for each query: (queries, k), best first.

    Args:
        queries: Vectors: (queries, dim).
        table: Vectors of the rows: (rows, dim).
        k: Number of rows to find.
    """
    k = min(k, len(table))
    block = max(1, _BLOCK_SCORES // max(1, len(table)))
    rows = [largest(part @ table.T, k) for part in torch.split(queries, block)]
    return torch.cat(rows) if rows else queries.new_zeros((0, k), dtype=torch.long)


def largest(scores: Tensor, k: int) -> Tensor:
    """Find the columns of the k largest scores of each query: (queries, k), best first.

    Args:
        scores: Scores: (queries, rows).
        k: Number of columns to find.
    """
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


REBUILT_AFTER = 1000
"""Searches in training after which the clusters of a trained table are built again."""
_SAMPLED, _ROUNDS, _SEED = 64, 8, 0
"""Settings of k-means: sampled rows for each cluster, rounds, seed."""


class Clusters(nn.Module):
    """The clusters of the rows of a table (an inverted file); saved with the weights.

    Args:
        n_rows: Number of rows of the table.
        dim: Length of its vectors.
        n_probed: Number of clusters that a search reads.
    """

    rows: Tensor
    """(rows,): all rows, sorted by cluster, then ascending."""
    starts: Tensor
    """(clusters + 1,): the start of each in ``rows``; zeros before they are built."""
    centres: Tensor
    """(clusters, dim)."""
    n_searches: Tensor
    """The number of searches in training since the clusters were built."""

    def __init__(self, n_rows: int, dim: int, n_probed: int) -> None:
        super().__init__()
        n_clusters = round(math.sqrt(n_rows))
        self.n_probed = min(n_probed, n_clusters)
        self.register_buffer("rows", torch.zeros(n_rows, dtype=torch.long))
        self.register_buffer("starts", torch.zeros(n_clusters + 1, dtype=torch.long))
        self.register_buffer("centres", torch.zeros(n_clusters, dim))
        self.register_buffer("n_searches", torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def build(self, table: Tensor) -> None:
        """Assign every row of the table to a cluster, from scratch."""
        with torch.autocast(table.device.type, enabled=False):
            centres = _find_centres(table, len(self.centres))
            cluster = _nearest_centres(table, centres)
        self.rows.copy_(cluster.argsort(stable=True))
        self.starts[1:] = cluster.bincount(minlength=len(centres)).cumsum(0)
        self.centres.copy_(centres)
        self.n_searches.zero_()

    @torch.no_grad()
    def search(self, queries: Tensor, table: Tensor, k: int) -> Tensor:
        """Find k rows of large inner product for each query: (queries, k), best first.

        Of equal products the lower row is first. A query whose clusters hold fewer than k rows
        also searches the next ones.

        Args:
            queries: Vectors: (queries, dim).
            table: Vectors of the rows: (rows, dim).
            k: Number of rows to find.
        """
        if self.training and len(table):
            self._rebuild_if_due(table)
        if not int(self.starts[-1]):
            return nearest_rows(queries, table, k)
        k = min(k, len(table))
        sizes = self.starts.diff().sort(descending=True).values
        width = max(int(sizes[: self.n_probed].sum()), k + int(sizes[0]), len(sizes))
        parts = torch.split(queries.to(table.dtype), max(1, _BLOCK_SCORES // width))
        with torch.autocast(table.device.type, enabled=False):
            rows = [self._search(part, table, k) for part in parts if len(part)]
        return torch.cat(rows) if rows else queries.new_zeros((0, k), dtype=torch.long)

    def _rebuild_if_due(self, table: Tensor) -> None:
        """Build the clusters if there are none, or if the rows may have moved away from them."""
        moved = table.requires_grad and int(self.n_searches) >= REBUILT_AFTER
        if moved or not int(self.starts[-1]):
            self.build(table)
        self.n_searches += 1

    def _search(self, queries: Tensor, table: Tensor, k: int) -> Tensor:
        scores = queries @ self.centres.to(table.dtype).T  # (queries, clusters)
        order = scores.sort(dim=1, descending=True, stable=True).indices
        ends = self.starts.diff()[order].cumsum(dim=1)  # rows seen after each cluster
        n_searched = ((ends < k).sum(dim=1) + 1).clamp(min=self.n_probed)  # (queries,)
        scores = self._score(queries, table, order, ends, n_searched)
        columns = largest(scores, k)
        last = scores.gather(1, columns).amin(dim=1, keepdim=True)
        rows = self._rows_at(columns, order, ends)
        rows = _in_order(rows, scores.gather(1, columns))
        tied = (scores >= last).sum(dim=1) > k
        if tied.any():  # the order of equal scores was arbitrary
            columns = torch.arange(scores.shape[1], device=scores.device)
            every = columns.repeat(int(tied.sum()), 1)
            every = self._rows_at(every, order[tied], ends[tied])
            rows[tied] = _in_order(every, scores[tied])[:, :k]
        return rows

    def _score(
        self, queries: Tensor, table: Tensor, order: Tensor, ends: Tensor, n_searched: Tensor
    ) -> Tensor:
        """Score the clusters of each query, in its order of clusters; missing scores are -inf.

        Every cluster is read from the table once, for all queries that search it.
        """
        ranks = torch.arange(order.shape[1], device=order.device)
        query, rank = (ranks < n_searched[:, None]).nonzero(as_tuple=True)
        cluster = order[query, rank]
        first = ends[query, rank] - self.starts.diff()[cluster]
        sorting = cluster.argsort(stable=True)
        query, first = query[sorting], first[sorting]
        width = int(ends.gather(1, n_searched[:, None] - 1).max())
        scores = queries.new_full((len(queries), width), -math.inf)
        starts, done = self.starts.tolist(), 0
        for index, n_queries in enumerate(cluster.bincount().tolist()):
            begin, end = starts[index], starts[index + 1]
            if n_queries and end > begin:
                selected = query[done : done + n_queries]
                columns = first[done : done + n_queries, None] + torch.arange(
                    end - begin, device=first.device
                )
                own = table.index_select(0, self.rows[begin:end])  # (rows of the cluster, dim)
                scores[selected[:, None], columns] = queries[selected] @ own.T
            done += n_queries
        return scores

    def _rows_at(self, columns: Tensor, order: Tensor, ends: Tensor) -> Tensor:
        """Map columns of scores to rows of the table: (queries, columns)."""
        rank = torch.searchsorted(ends, columns, right=True)
        cluster = order.gather(1, rank)
        return self.rows[self.starts[cluster + 1] - ends.gather(1, rank) + columns]


def _in_order(rows: Tensor, scores: Tensor) -> Tensor:
    """Sort the rows of each query: best first, of equal ones the lower."""
    by_row = rows.argsort(dim=1)
    by_score = scores.gather(1, by_row).argsort(dim=1, descending=True, stable=True)
    return rows.gather(1, by_row.gather(1, by_score))


def _find_centres(table: Tensor, n_clusters: int) -> Tensor:
    """Run k-means on a sample of rows, starting from random rows."""
    rng = torch.Generator().manual_seed(_SEED)
    sampled = torch.randperm(len(table), generator=rng)[: _SAMPLED * n_clusters]
    sample = table[sampled.to(table.device)]
    centres = sample[:n_clusters].clone()
    for _ in range(_ROUNDS):
        cluster = _nearest_centres(sample, centres)
        sizes = cluster.bincount(minlength=n_clusters)
        # sums of sorted rows: adding by index has no fixed order on a GPU
        sums = torch.segment_reduce(sample[cluster.argsort(stable=True)], "sum", lengths=sizes)
        has = sizes > 0
        centres[has] = sums[has] / sizes[has, None]
    return centres


def _nearest_centres(table: Tensor, centres: Tensor) -> Tensor:
    """Find the nearest centre of each row: (rows,)."""
    halves = centres.square().sum(dim=1) / 2
    blocks = torch.split(table, max(1, _BLOCK_SCORES // len(centres)))
    return torch.cat([(block @ centres.T - halves).argmax(dim=1) for block in blocks])
