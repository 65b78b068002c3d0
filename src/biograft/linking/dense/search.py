"""Exact search: a quick scan of all vectors, then exact scores for what might be among the best.

The scan computes in bfloat16 where the processor is quick in it, else in 32 bits, and keeps some
more rows than are asked for. Those are scored anew in 64 bits. How far the scan may be wrong is
known, so it is also known whether a row that was not kept could still belong to the answer; for
the queries where one could, the scan is made again, finer and wider. The result is therefore the
one that a comparison of all pairs gives, ties included: equal scores by lower row first.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt
import torch

from biograft.linking.dense.vectors import CHUNK, Rows, Vectors, VectorTable
from biograft.nn.precision import processor_has_bf16

SPARE = {"coarse": 118, "fine": 22}
"""How many rows a scan keeps beyond those asked for."""
_QUERIES = 512
_RUN = 64
"""Scores that are looked at together."""
_WAITING = 0.5
"""What was found is sorted in when it is so much of what is kept."""
_RESCORED = 32
"""How many queries are scanned for, and scored anew, at once."""
_COARSE_QUERIES, _COARSE_ROWS = 16, 50_000
"""From how many queries and rows on the coarse scan repays turning all rows into bfloat16."""
_HALF_STEP = {"coarse": 2.0**-8, "fine": 2.0**-24}
"""The largest relative error of rounding to bfloat16 and to 32 bits."""


class RowHits(NamedTuple):
    """The best rows of each query, best first."""

    rows: Rows  # (queries, k), -1 where there are fewer
    scores: Vectors  # (queries, k), -inf where there are fewer


class ExactSearch:
    """Finds the rows of a table whose inner products with a query are the largest."""

    def __init__(
        self, vectors: VectorTable, largest_norm: float, *, coarse: bool | None = None
    ) -> None:
        self.vectors, self.largest_norm = vectors, largest_norm
        self.coarse = coarse

    def search(self, queries: Vectors, k: int) -> RowHits:
        """Find the k best rows of each query: queries (n, dim)."""
        hits = no_hits(len(queries), k)
        for start in range(0, len(queries), _QUERIES):
            block = slice(start, start + _QUERIES)
            self._search(queries[block], RowHits(hits.rows[block], hits.scores[block]))
        return hits

    def _search(self, queries: Vectors, hits: RowHits) -> None:
        """Scan until every query of a block is settled, filling in its hits."""
        k = min(hits.rows.shape[1], self.vectors.n_rows)
        scan = "coarse" if self._begins_coarse(len(queries)) else "fine"
        n_kept, pending = k + SPARE[scan], np.arange(len(queries))
        while k and len(pending):
            wanted = queries[pending]
            rows, lowest = self._scan(wanted, min(n_kept, self.vectors.n_rows), scan)
            rows, scores = rank(rescore(self.vectors, wanted, rows), rows)
            bound = lowest + self._error_bound(wanted, lowest, scan)
            settled = (scores[:, k - 1] > bound) | (n_kept >= self.vectors.n_rows)
            hits.rows[pending[settled], :k] = rows[settled, :k]
            hits.scores[pending[settled], :k] = scores[settled, :k]
            pending = pending[~settled]
            n_kept = n_kept if scan == "coarse" else 4 * n_kept
            scan = "fine"

    def _begins_coarse(self, n_queries: int) -> bool:
        if self.coarse is not None:
            return self.coarse
        repays = n_queries >= _COARSE_QUERIES and self.vectors.n_rows >= _COARSE_ROWS
        return repays and processor_has_bf16()

    def _scan(self, queries: Vectors, n_kept: int, scan: str) -> tuple[Rows, Vectors]:
        """Give the rows whose approximate scores are highest, and the lowest of those scores."""
        if scan == "fine":
            return self._scan_fine(queries, n_kept)
        wanted = torch.from_numpy(queries).to(torch.bfloat16)
        best = torch.empty((len(queries), 0), dtype=torch.bfloat16)
        places = torch.empty((len(queries), 0), dtype=torch.int64)
        for start in range(0, self.vectors.n_rows, CHUNK):
            rows = self.vectors.chunk(start, start + CHUNK).to(torch.bfloat16)  # (chunk, dim)
            scores = wanted @ rows.T  # (queries, chunk)
            scores, found = scores.topk(min(n_kept, scores.shape[1]), dim=1)
            best = torch.cat((best, scores), dim=1)
            places = torch.cat((places, found + start), dim=1)
            best, order = best.topk(min(n_kept, best.shape[1]), dim=1)
            places = places.gather(1, order)
        return places.numpy(), best[:, -1].float().numpy()

    def _scan_fine(self, queries: Vectors, n_kept: int) -> tuple[Rows, Vectors]:
        """Scan in 32 bits: numpy multiplies quicker than torch here, and little is looked at.

        Once as many rows are kept as are wanted, only what beats the lowest of them counts, and
        of most runs of rows no score does.
        """
        kept = _Kept(len(queries), n_kept)
        for start in range(0, self.vectors.n_rows, CHUNK):
            rows = self.vectors.chunk(start, start + CHUNK).float().numpy()  # (chunk, dim)
            kept.add(queries @ rows.T, start)
        return kept.best()

    def _error_bound(self, queries: Vectors, lowest: Vectors, scan: str) -> Vectors:
        """Say by how much the true score of a row that was not kept may exceed the lowest kept.

        By Cauchy and Schwarz, an error e in a query moves a score by no more than |e| times the
        length of the row, and the other way round. Products are summed in 32 bits.
        """
        norms = np.linalg.norm(queries, axis=1)
        bound = 2 * self.vectors.dim * _HALF_STEP["fine"] * norms * self.largest_norm
        if scan == "coarse":
            rounded = torch.from_numpy(queries).to(torch.bfloat16).float().numpy()
            bound += np.linalg.norm(queries - rounded, axis=1) * self.largest_norm
            bound += np.abs(lowest) * _HALF_STEP["coarse"]  # the score itself is rounded
            if self.vectors.storage != "bfloat16":
                largest_error = self.largest_norm * _HALF_STEP["coarse"]
                bound += np.linalg.norm(rounded, axis=1) * largest_error
        result: Vectors = bound.astype(np.float32)
        return result


class _Kept:
    """The best rows so far of some queries.

    What beats the lowest waits until there is enough of it to be worth sorting.
    """

    def __init__(self, n_queries: int, n_kept: int) -> None:
        self._rows: Rows = np.full((n_queries, n_kept), -1, dtype=np.int64)
        self._scores: Vectors = np.full((n_queries, n_kept), -np.inf, dtype=np.float32)
        self._lowest: Vectors = np.full(n_queries, -np.inf, dtype=np.float32)
        self._waiting: list[tuple[Rows, Rows, Vectors]] = []

    def best(self) -> tuple[Rows, Vectors]:
        """Give the rows that are kept, and the lowest score of each query's."""
        self._merge()
        return self._rows, self._lowest

    def add(self, scores: Vectors, start: int) -> None:
        """Take note of the scores of further rows: (queries, rows), the first being ``start``."""
        n_queries, n_rows = scores.shape
        n_kept = self._rows.shape[1]
        if n_rows > n_kept and np.isneginf(self._lowest).any():
            columns = np.argpartition(-scores, n_kept - 1, axis=1)[:, :n_kept].ravel()
            queries = np.repeat(np.arange(n_queries), n_kept)
        else:
            queries, columns = _find_higher(scores, self._lowest)
        self._waiting.append((queries, columns + start, scores[queries, columns]))
        if sum(len(queries) for queries, _, _ in self._waiting) > self._rows.size * _WAITING:
            self._merge()

    def _merge(self) -> None:
        n_queries, n_kept = self._rows.shape
        kept = np.repeat(np.arange(n_queries), n_kept), self._rows.ravel(), self._scores.ravel()
        parts = zip(kept, *self._waiting, strict=True)
        queries, rows, scores = (np.concatenate(part) for part in parts)
        order = np.lexsort((rows, -scores, queries))
        starts = np.searchsorted(queries[order], np.arange(n_queries))
        best = order[starts[:, None] + np.arange(n_kept)]
        self._rows, self._scores = rows[best], scores[best]
        self._lowest, self._waiting = self._scores.min(axis=1), []


@numba.njit(nogil=True, cache=True)
def _find_higher(scores: Vectors, lowest: Vectors) -> tuple[Rows, Rows]:
    """Find the few scores that beat the lowest of their query: query and column of each."""
    n_queries, n_columns = scores.shape
    queries, columns, n = np.empty(n_queries, np.int64), np.empty(n_queries, np.int64), 0
    for query in range(n_queries):
        for start in range(0, n_columns, _RUN):
            end = min(start + _RUN, n_columns)
            n_higher = 0
            for column in range(start, end):  # without a branch: many columns in one instruction
                n_higher += scores[query, column] > lowest[query]
            if not n_higher:
                continue
            if n + n_higher > len(queries):
                queries = np.append(queries, np.empty(len(queries) + n_higher, np.int64))
                columns = np.append(columns, np.empty(len(columns) + n_higher, np.int64))
            for column in range(start, end):
                if scores[query, column] > lowest[query]:
                    queries[n], columns[n] = query, column
                    n += 1
    return queries[:n], columns[:n]


def no_hits(n_queries: int, k: int) -> RowHits:
    """Give the hits of queries for which nothing has been found yet."""
    rows = np.full((n_queries, k), -1, dtype=np.int64)
    return RowHits(rows, np.full((n_queries, k), -np.inf, dtype=np.float32))


def rescore(vectors: VectorTable, queries: Vectors, rows: Rows) -> Vectors:
    """Score certain rows for each query exactly: rows (queries, m), -1 scores -inf.

    Summed in 64 bits and then rounded, so that equal vectors score equally wherever they stand.
    """
    scores = np.empty(rows.shape, dtype=np.float32)
    for start in range(0, len(rows), _RESCORED):
        block = slice(start, start + _RESCORED)
        taken = vectors.take(rows[block].ravel()).astype(np.float64)
        taken = taken.reshape(*rows[block].shape, vectors.dim)  # (block, m, dim)
        exact: npt.NDArray[np.float64] = taken @ queries[block].astype(np.float64)[:, :, None]
        scores[block] = exact[:, :, 0]
    scores[rows < 0] = -np.inf
    return scores


def rank(scores: Vectors, rows: Rows) -> tuple[Rows, Vectors]:
    """Order the rows of each query by score, equal ones by lower row first."""
    order = np.lexsort((rows, -scores), axis=1)
    return np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1)
