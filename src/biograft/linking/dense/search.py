"""Nearest-neighbour search over vectors on disk: exact, or approximate by an HNSW graph.

``vectors.npy`` holds one vector per row, memory-mapped; bfloat16, which numpy lacks, as 16-bit
integers. With int8, ``scales.npy`` holds the factor of each row. :class:`ExactSearch` scans with
rounded scores and an error bound, and rescores what remains; :class:`GraphSearch` uses faiss.
torch is needed for nothing; where an encoder has loaded it, it multiplies vectors of 8 bits.

The first pass over vectors of 8 bits has bounds, too. A vector x is c s + e: whole numbers c from
-127 to 127, a scale s, and a rounding error e. For a query q = c' s' + e', the inner product
differs from s s' (c c') by at most |c' s'| |e| + |e'| |x| (Cauchy and Schwarz). The norms of all
errors are known, so that each product of whole numbers gives an upper and a lower bound of a score.
A row whose upper bound is below the k-th largest lower bound is not among the k best. Nothing else
is left out.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from biograft.arrays import Float32s, Ints
from biograft.artifacts import Mode, check_ends, check_length, check_range, create_array, open_array
from biograft.compute import njit
from biograft.errors import MissingExtraError, StoreError
from biograft.linking.dense.config import DENSE_INDEX

Rows = Ints

_LARGEST = 127
_PRODUCTS = 16
"""Products that are compared together."""
_SLACK = 2.0**-19
"""Bound of the relative error of all sums in float32 below, and of rounding the score itself."""
_ROOM = 2048
"""Rows kept for each query, and four times k; a query that needs more is given up."""


@dataclass(frozen=True, slots=True)
class Rounded:
    """Vectors rounded to 8 bits, with what bounds the error of their products."""

    codes: npt.NDArray[np.int8]  # (n, dim)
    scales: Float32s
    errors: Float32s  # at least the norms of the rounding errors
    norms: Float32s  # at least the norms of the vectors

    @classmethod
    def empty(cls, n: int, dim: int) -> Rounded:
        """Make room for vectors.

        Args:
            n: Number of vectors.
            dim: Their length.
        """
        numbers = (np.zeros(n, np.float32) for _ in range(3))
        return cls(np.zeros((n, dim), np.int8), *numbers)

    def fill(self, start: int, vectors: Float32s) -> None:
        """Round vectors and store them from ``start`` on.

        Args:
            start: Row of the first vector.
            vectors: Vectors: (n, dim).
        """
        part = slice(start, start + len(vectors))
        _round(vectors, self.codes[part], self.scales[part], self.errors[part], self.norms[part])


class Candidates(NamedTuple):
    """The rows that may be among the k best of each query."""

    rows: Rows  # (queries, room), in any order
    upper: Float32s  # (queries, room): upper bounds of their scores, -inf beyond the rows
    counts: Rows  # (queries,), -1 where there was not enough room
    lower: Float32s  # (queries, k): the k largest lower bounds as a heap, the smallest first


def find_candidates(rows: Rounded, queries: Float32s, k: int, chunk: int) -> Candidates:
    """Find all rows that may be among the k best of each query.

    Args:
        rows: Rows of the table, rounded to 8 bits.
        queries: Vectors of the queries.
        k: Number of best rows wanted.
        chunk: Rows that are multiplied at a time.
    """
    import torch

    n, room = len(queries), _ROOM + 4 * k
    rounded = Rounded.empty(*queries.shape)
    rounded.fill(0, queries)
    weights = np.stack((rounded.norms + rounded.errors, rounded.errors + _SLACK * rounded.norms))
    bounds = rounded.scales, weights.astype(np.float32) * np.float32(1 + _SLACK)
    found = Candidates(
        np.empty((n, room), np.int64),
        np.empty((n, room), np.float32),
        np.zeros(n, np.int64),
        np.full((n, k), -np.inf, np.float32),
    )
    query_codes, row_codes = torch.from_numpy(rounded.codes), torch.from_numpy(rows.codes)
    for start in range(0, len(rows.codes), chunk):
        part = slice(start, start + chunk)
        products = torch._int_mm(query_codes, row_codes[part].T)  # (queries, chunk), 32 bits
        measures = rows.scales[part], rows.errors[part], rows.norms[part]
        _collect(products.numpy(), start, measures, bounds, found)
    _close(found)
    width = max(int(found.counts.max(initial=0)), k)
    return found._replace(rows=found.rows[:, :width], upper=found.upper[:, :width])


@njit(fastmath={"reassoc", "contract"})
def _round(
    vectors: Float32s, codes: Any, scales: Float32s, errors: Float32s, norms: Float32s
) -> None:
    for i in range(len(vectors)):
        vector, row, largest = vectors[i], codes[i], np.float32(0)
        for d in range(len(vector)):
            largest = max(largest, abs(vector[d]))
        scale = max(largest, np.float32(1e-30)) / np.float32(_LARGEST)
        inverse = np.float32(1) / scale
        for d in range(len(vector)):
            row[d] = np.int8(np.rint(vector[d] * inverse))
        error, norm = 0.0, 0.0
        for d in range(len(vector)):
            x = np.float64(vector[d])
            rest = x - np.float64(row[d]) * np.float64(scale)
            error += rest * rest
            norm += x * x
        scales[i] = scale
        errors[i] = np.float32(np.sqrt(error) * (1 + 1e-6))
        norms[i] = np.float32(np.sqrt(norm) * (1 + 1e-6))


@njit()
def _collect(products: Any, start: int, measures: Any, bounds: Any, found: Candidates) -> None:
    """Keep the rows of a chunk whose upper bound reaches the k-th largest lower bound so far."""
    scales, errors, norms = measures
    query_scales, weights = bounds
    largest_error, largest_norm = errors.max(), norms.max()
    for query in range(len(products)):
        lower, scale, count = found.lower[query], query_scales[query], found.counts[query]
        of_error, of_norm = weights[0, query], weights[1, query]
        slack = of_error * largest_error + of_norm * largest_norm
        limit = (lower[0] - slack) / scale
        row = products[query]
        for first in range(0, len(row), _PRODUCTS):
            run, run_scales = row[first : first + _PRODUCTS], scales[first : first + _PRODUCTS]
            n_higher = np.int32(0)
            for at in range(len(run)):  # no branch and no wraparound, so that it is vectorised
                n_higher += np.int32(np.float32(run[at]) * run_scales[at] >= limit)
            if not n_higher or count < 0:
                continue
            for at in range(first, first + len(run)):
                scaled = np.float32(row[at]) * scales[at]
                if scaled < limit:
                    continue
                score = scaled * scale
                bound = of_error * errors[at] + of_norm * norms[at]
                if score + bound < lower[0]:
                    continue
                count = _keep(found, query, count, start + at, score, bound)
                if count < 0:
                    break
                limit = (lower[0] - slack) / scale
        found.counts[query] = count


@njit()
def _keep(found: Candidates, query: int, count: int, row: int, score: float, bound: float) -> int:
    """Keep a row of a query; return the number kept, -1 if there is not enough room."""
    rows, upper, lower = found.rows[query], found.upper[query], found.lower[query]
    if count == len(rows):
        count = _compact(rows, upper, count, lower[0])
        if count == len(rows):
            return -1
    rows[count], upper[count] = row, score + bound
    if score - bound > lower[0]:
        _replace_first(lower, score - bound)
    return count + 1


@njit()
def _close(found: Candidates) -> None:
    """Drop the rows that were kept when less was known."""
    for query in range(len(found.counts)):
        rows, upper, count = found.rows[query], found.upper[query], found.counts[query]
        if count >= 0:
            count = found.counts[query] = _compact(rows, upper, count, found.lower[query, 0])
        upper[max(count, 0) :] = -np.inf


@njit()
def _compact(rows: Rows, upper: Float32s, count: int, limit: float) -> int:
    """Drop rows below a limit; return how many are left."""
    n = 0
    for at in range(count):
        if upper[at] >= limit:
            rows[n], upper[n] = rows[at], upper[at]
            n += 1
    return n


@njit()
def _replace_first(heap: Float32s, value: float) -> None:
    """Replace the smallest value of a heap."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= len(heap):
            break
        if child + 1 < len(heap) and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = value


VECTORS, SCALES = "vectors.npy", "scales.npy"
CHUNK = 8192
"""Rows processed at once, so that a product with some hundred queries fits into the caches."""
_DTYPES: dict[str, type[np.generic]] = {
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": np.uint16,
    "int8": np.int8,
}
_LARGEST_INT8 = 127

Vectors = Float32s


class VectorTable:
    """The vectors of an index, rows of equal length.

    Args:
        storage: Type of the numbers, one of ``STORAGES``.
        rows: The vectors.
        scales: Factor of each row, for ``int8`` only.
    """

    def __init__(self, storage: str, rows: npt.NDArray[np.generic], scales: Vectors | None) -> None:
        self.storage, self._rows, self._scales = storage, rows, scales
        self.n_rows, self.dim = rows.shape

    @classmethod
    def create(cls, folder: Path, storage: str, n_rows: int, dim: int) -> VectorTable:
        """Create the files for a number of vectors, to be written in any order.

        Args:
            folder: Folder of the files.
            storage: Type of the numbers, one of ``STORAGES``.
            n_rows: Number of vectors.
            dim: Their length.
        """
        rows = create_array(folder / VECTORS, _DTYPES[storage], (n_rows, dim))
        scales = None
        if storage == "int8":
            scales = create_array(folder / SCALES, np.float32, (n_rows,))
        return cls(storage, rows, scales)

    @classmethod
    def open(cls, folder: Path, storage: str, *, writable: bool = False) -> VectorTable:
        """Memory-map the files of a folder.

        Args:
            folder: Folder of the files.
            storage: Type of the numbers, one of ``STORAGES``.
            writable: Write changes to the files.
        """
        # "c" shares the pages of the file, too; torch warns about read-only arrays
        mode: Mode = "r+" if writable else "c"
        rows = load_array(folder / VECTORS, _DTYPES[storage], n_axes=2, mode=mode)
        scales = None
        if storage == "int8":
            scales = cast("Vectors", load_array(folder / SCALES, np.float32, mode=mode))
            try:
                check_length("scales", scales, len(rows))
            except ValueError as error:
                raise DENSE_INDEX.damaged(folder, error) from error
        return cls(storage, rows, scales)

    def write(self, rows: Rows, vectors: Vectors) -> None:
        """Write vectors to rows.

        Args:
            rows: Rows to write.
            vectors: Their vectors.
        """
        if self.storage == "bfloat16":
            self._rows[rows] = to_bfloat16(vectors)
        elif self._scales is not None:
            largest = np.abs(vectors).max(axis=1, initial=0)
            scales = np.maximum(largest, np.finfo(np.float32).tiny) / _LARGEST_INT8
            self._rows[rows] = np.rint(vectors / scales[:, None]).astype(np.int8)
            self._scales[rows] = scales
        else:
            self._rows[rows] = vectors

    def copy(self, rows: Rows, other: VectorTable, other_rows: Rows) -> None:
        """Copy rows of another table of the same storage, bit for bit.

        Args:
            rows: Rows to replace.
            other: Table to copy from.
            other_rows: Its rows, as many.
        """
        self._rows[rows] = other._rows[other_rows]
        if self._scales is not None and other._scales is not None:
            self._scales[rows] = other._scales[other_rows]

    def flush(self) -> None:
        """Flush everything written so far to disk."""
        for array in (self._rows, self._scales):
            if isinstance(array, np.memmap):
                array.flush()

    def chunk(self, start: int, stop: int) -> Vectors:
        """Return consecutive rows: (stop - start, dim), float32.

        Args:
            start: First row.
            stop: Row after the last.
        """
        rows = slice(start, stop)
        return self._decode(self._rows[rows], None if self._scales is None else self._scales[rows])

    def take(self, rows: Rows) -> Vectors:
        """Return any rows: (rows, dim), float32; the same values as ``chunk``."""
        scales = None if self._scales is None else self._scales[rows]
        return self._decode(self._rows[rows], scales)

    def largest_norm(self) -> float:
        """Compute the maximum norm of the stored vectors."""
        norms = [
            float(np.linalg.norm(self.chunk(start, start + CHUNK), axis=1).max())
            for start in range(0, self.n_rows, CHUNK)
        ]
        return max(norms, default=0.0)

    def _decode(self, encoded: npt.NDArray[np.generic], scales: Vectors | None) -> Vectors:
        if self.storage == "bfloat16":
            return from_bfloat16(encoded)
        decoded = np.asarray(encoded).astype(np.float32, copy=False)
        return decoded if scales is None else decoded * scales[:, None]


class UnitVectorTable(VectorTable):
    """The vectors of a table, each divided by its norm; a zero vector stays zero."""

    def __init__(self, table: VectorTable) -> None:
        super().__init__(table.storage, table._rows, table._scales)
        norms = [
            np.linalg.norm(table.chunk(start, start + CHUNK), axis=1)
            for start in range(0, table.n_rows, CHUNK)
        ]
        found = np.concatenate(norms) if norms else np.zeros(0, np.float32)
        self._norms: Vectors = np.maximum(found, np.finfo(np.float32).tiny).astype(np.float32)

    def chunk(self, start: int, stop: int) -> Vectors:
        """Return consecutive rows: (stop - start, dim), float32.

        Args:
            start: First row.
            stop: Row after the last.
        """
        chunk: Vectors = super().chunk(start, stop) / self._norms[start:stop, None]
        return chunk

    def take(self, rows: Rows) -> Vectors:
        """Return any rows: (rows, dim), float32; the same values as ``chunk``."""
        taken: Vectors = super().take(rows) / self._norms[rows][:, None]
        return taken


def to_bfloat16(vectors: Vectors) -> npt.NDArray[np.uint16]:
    """Round finite numbers to bfloat16, ties to even, as 16-bit integers."""
    bits = np.ascontiguousarray(vectors, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bfloat16(halves: npt.NDArray[np.generic]) -> Vectors:
    """Return the numbers that 16-bit integers stand for."""
    return (halves.astype(np.uint32) << 16).view(np.float32)


def load_array(
    path: Path, kind: type[np.generic], *, n_axes: int = 1, mode: Mode = "c"
) -> npt.NDArray[np.generic]:
    """Memory-map one ``.npy`` file, refusing one that is damaged or of another type.

    Args:
        path: The file.
        kind: Type of its numbers.
        n_axes: Number of its axes.
        mode: As for :func:`biograft.artifacts.open_array`.
    """
    try:
        return open_array(path, kind, n_axes=n_axes, mode=mode)
    except ValueError as error:
        raise DENSE_INDEX.damaged(path.parent, error) from error


SPARE = 22
"""Number of rows that a scan in float32 keeps beyond k."""
_QUERIES = 256
_RUN = 64
"""Scores that are compared together."""
_PENDING = 0.5
"""Pending hits are merged when there are more of them than this fraction of the rows kept."""
_RESCORED = 8192
"""Number of rows rescored at once."""
_COARSE_QUERIES, _COARSE_ROWS = 16, 50_000
"""Minimum numbers of queries and rows for which rounding all rows to 8 bits pays."""
_HALF_STEP = 2.0**-24
"""The largest relative error of rounding to 32 bits."""


class RowHits(NamedTuple):
    """The best rows of each query, best first."""

    rows: Rows  # (queries, k), -1 where there are fewer
    """Row numbers, (queries, k), padded with -1."""
    scores: Vectors  # (queries, k), -inf where there are fewer
    """Similarity of each row."""


class ExactSearch:
    """Finds the rows of a table with the largest inner products with a query, exactly.

    Many queries are searched with vectors of 8 bits first, if the processor multiplies them. These
    are kept in memory, a quarter of the vectors in 32 bits.

    Args:
        vectors: The table.
        largest_norm: Largest length of its vectors.
        coarse: Search with 8 bits first; default: if there are enough queries and rows for it to
            pay.
    """

    def __init__(
        self, vectors: VectorTable, largest_norm: float, *, coarse: bool | None = None
    ) -> None:
        self.vectors, self.largest_norm = vectors, largest_norm
        self.coarse = coarse

    def search(self, queries: Vectors, k: int) -> RowHits:
        """Find the k best rows of each query: queries (n, dim).

        Args:
            queries: Query vectors: (n, dim).
            k: Number of rows of each.
        """
        hits = no_hits(len(queries), k)
        for start in range(0, len(queries), _QUERIES):
            block = slice(start, start + _QUERIES)
            self._search(queries[block], RowHits(hits.rows[block], hits.scores[block]))
        return hits

    def _search(self, queries: Vectors, hits: RowHits) -> None:
        """Scan until the hits of every query are proven exact, and write them to ``hits``."""
        k, pending = min(hits.rows.shape[1], self.vectors.n_rows), np.arange(len(queries))
        if k and len(pending) and self._starts_coarse(len(queries)):
            pending = self._search_coarse(queries, k, hits)
        n_kept = k + SPARE
        while k and len(pending):
            block = queries[pending]
            rows, lowest = self._scan(block, min(n_kept, self.vectors.n_rows))
            rows, scores = rank(rescore(self.vectors, block, rows), rows)
            bound = lowest + self._error_bound(block)
            settled = (scores[:, k - 1] > bound) | (n_kept >= self.vectors.n_rows)
            hits.rows[pending[settled], :k] = rows[settled, :k]
            hits.scores[pending[settled], :k] = scores[settled, :k]
            pending = pending[~settled]
            n_kept *= 4

    def _starts_coarse(self, n_queries: int) -> bool:
        if self.coarse is not None:
            return self.coarse
        pays = n_queries >= _COARSE_QUERIES and self.vectors.n_rows >= _COARSE_ROWS
        return pays and _has_int8_products()

    @functools.cached_property
    def _rounded(self) -> Rounded:
        rounded = Rounded.empty(self.vectors.n_rows, self.vectors.dim)
        for start in range(0, self.vectors.n_rows, CHUNK):
            rounded.fill(start, self.vectors.chunk(start, start + CHUNK))
        return rounded

    def _search_coarse(self, queries: Vectors, k: int, hits: RowHits) -> Rows:
        """Search in 8 bits, write the hits; return the queries with too many candidates.

        The candidates with the k highest bounds are rescored first: what cannot reach the lowest
        score among them is left out.
        """
        found = find_candidates(self._rounded, queries, k, CHUNK)
        settled = found.counts >= k
        highest = -np.partition(-found.upper, k - 1, axis=1)[:, k - 1]
        highest[~settled] = np.inf
        known = found.upper >= highest[:, None]  # (queries, candidates)
        scores = np.full(found.upper.shape, np.inf, np.float32)
        scores[known] = self._rescore(queries, found, known)
        lowest = scores.min(axis=1)
        rest = (found.upper >= lowest[:, None]) & ~known & settled[:, None]
        scores[rest] = self._rescore(queries, found, rest)
        scores[~(known | rest)] = -np.inf
        rows, scores = rank(scores, found.rows)
        hits.rows[settled, :k], hits.scores[settled, :k] = rows[settled, :k], scores[settled, :k]
        return np.flatnonzero(~settled)

    def _rescore(self, queries: Vectors, found: Candidates, which: Any) -> Vectors:
        return rescore_pairs(self.vectors, queries, np.nonzero(which)[0], found.rows[which])

    def _scan(self, queries: Vectors, n_kept: int) -> tuple[Rows, Vectors]:
        """Scan in float32; return the rows with the highest scores, and the lowest of those.

        Once ``n_kept`` rows are collected, only scores above the lowest of them count, and most
        runs of rows have none.
        """
        best = _BestRows(len(queries), n_kept)
        for start in range(0, self.vectors.n_rows, CHUNK):
            rows = self.vectors.chunk(start, start + CHUNK)  # (chunk, dim)
            best.add(queries @ rows.T, start)
        return best.result()

    def _error_bound(self, queries: Vectors) -> Vectors:
        """Bound by how much a row that was not kept may exceed the lowest score kept."""
        norms = np.linalg.norm(queries, axis=1)
        bound = 2 * self.vectors.dim * _HALF_STEP * norms * self.largest_norm
        result: Vectors = bound.astype(np.float32)
        return result


def _has_int8_products() -> bool:
    """Whether the encoder has loaded torch, and the processor multiplies 8-bit integers."""
    if sys.modules.get("torch") is None:
        return False
    from biograft.models.precision import processor_has_int8

    return processor_has_int8()


class _BestRows:
    """The best rows of some queries so far; new hits are collected and merged in bulk."""

    def __init__(self, n_queries: int, n_kept: int) -> None:
        self._rows: Rows = np.full((n_queries, n_kept), -1, dtype=np.int64)
        self._scores: Vectors = np.full((n_queries, n_kept), -np.inf, dtype=np.float32)
        self._lowest: Vectors = np.full(n_queries, -np.inf, dtype=np.float32)
        self._pending: list[tuple[Rows, Rows, Vectors]] = []

    def result(self) -> tuple[Rows, Vectors]:
        """Return the rows kept, and the lowest score of each query."""
        self._merge()
        return self._rows, self._lowest

    def add(self, scores: Vectors, start: int) -> None:
        """Add the scores of further rows, (queries, rows), the first of which is ``start``."""
        n_queries, n_rows = scores.shape
        n_kept = self._rows.shape[1]
        if n_rows > n_kept and np.isneginf(self._lowest).any():
            columns = np.argpartition(-scores, n_kept - 1, axis=1)[:, :n_kept].ravel()
            queries = np.repeat(np.arange(n_queries), n_kept)
        else:
            queries, columns = _find_higher(scores, self._lowest)
        self._pending.append((queries, columns + start, scores[queries, columns]))
        if sum(len(queries) for queries, _, _ in self._pending) > self._rows.size * _PENDING:
            self._merge()

    def _merge(self) -> None:
        n_queries, n_kept = self._rows.shape
        current = np.repeat(np.arange(n_queries), n_kept), self._rows.ravel(), self._scores.ravel()
        parts = zip(current, *self._pending, strict=True)
        queries, rows, scores = (np.concatenate(part) for part in parts)
        order = np.lexsort((rows, -scores, queries))
        starts = np.searchsorted(queries[order], np.arange(n_queries))
        best = order[starts[:, None] + np.arange(n_kept)]
        self._rows, self._scores = rows[best], scores[best]
        self._lowest, self._pending = self._scores.min(axis=1), []


def _find_higher_in_few(scores: Vectors, lowest: Vectors) -> tuple[Rows, Rows]:
    queries, columns = np.nonzero(scores > lowest[:, None])
    return queries.astype(np.int64), columns.astype(np.int64)


@njit(work=lambda scores, _: scores.size // 1000, plain=_find_higher_in_few)
def _find_higher(scores: Vectors, lowest: Vectors) -> tuple[Rows, Rows]:
    """Find the scores above the lowest of their query; return the query and column of each."""
    n_queries, n_columns = scores.shape
    queries, columns, n = np.empty(n_queries, np.int64), np.empty(n_queries, np.int64), 0
    for query in range(n_queries):
        for start in range(0, n_columns, _RUN):
            run, n_higher = scores[query, start : start + _RUN], np.int32(0)
            for at in range(len(run)):  # no branch and no wraparound, so that it is vectorised
                n_higher += np.int32(run[at] > lowest[query])
            if not n_higher:
                continue
            if n + n_higher > len(queries):
                queries = _grown(queries, 2 * len(queries) + n_higher)
                columns = _grown(columns, 2 * len(columns) + n_higher)
            for column in range(start, start + len(run)):
                if scores[query, column] > lowest[query]:
                    queries[n], columns[n] = query, column
                    n += 1
    return queries[:n], columns[:n]


@njit()
def _grown(values: Rows, size: int) -> Rows:
    out = np.empty(size, np.int64)
    for i in range(len(values)):
        out[i] = values[i]
    return out


def no_hits(n_queries: int, k: int) -> RowHits:
    """Return empty hits, padded with -1 and -inf.

    Args:
        n_queries: Number of queries.
        k: Number of rows of each.
    """
    rows = np.full((n_queries, k), -1, dtype=np.int64)
    return RowHits(rows, np.full((n_queries, k), -np.inf, dtype=np.float32))


def rescore(vectors: VectorTable, queries: Vectors, rows: Rows) -> Vectors:
    """Compute the exact scores of given rows for each query: rows (queries, m), -1 scores -inf.

    Args:
        vectors: The table.
        queries: Vectors of the queries.
        rows: Rows of the table for each query, padded with -1.
    """
    scores = np.full(rows.shape, -np.inf, dtype=np.float32)
    given = np.nonzero(rows >= 0)
    scores[given] = rescore_pairs(vectors, queries, given[0], rows[given])
    return scores


def rescore_pairs(vectors: VectorTable, queries: Vectors, of_query: Rows, rows: Rows) -> Vectors:
    """Compute the exact scores of pairs of a query and a row.

    Summed in float64 and then rounded, so that equal vectors have equal scores.

    Args:
        vectors: The table.
        queries: Vectors of the queries.
        of_query: Index of the query of each pair.
        rows: Row of the table of each pair.
    """
    scores = np.empty(len(rows), dtype=np.float32)
    for start in range(0, len(rows), _RESCORED):
        block = slice(start, start + _RESCORED)
        _multiply(vectors.take(rows[block]), queries, of_query[block], scores[block])
    return scores


def _multiply_few(vectors: Vectors, queries: Vectors, of_query: Rows, scores: Vectors) -> None:
    scores[:] = (vectors.astype(np.float64) * queries[of_query]).sum(axis=1)


@njit(
    work=lambda vectors, *_: vectors.size // 1000,
    plain=_multiply_few,
    fastmath={"reassoc", "contract"},
)
def _multiply(vectors: Vectors, queries: Vectors, of_query: Rows, scores: Vectors) -> None:
    for at in range(len(vectors)):
        vector, query, total = vectors[at], queries[of_query[at]], 0.0
        for d in range(len(vector)):
            total += np.float64(vector[d]) * np.float64(query[d])
        scores[at] = np.float32(total)


def rank(scores: Vectors, rows: Rows) -> tuple[Rows, Vectors]:
    """Sort the rows of each query by score; ties go to the lower row.

    Args:
        scores: Scores: (queries, k).
        rows: Their rows: (queries, k).
    """
    order = np.lexsort((rows, -scores), axis=1)
    return np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1)


GRAPH = "graph.faiss"
_LINKS, _BUILD_WIDTH, _SEARCH_WIDTH = 32, 100, 64


def load_faiss() -> Any:
    """Import faiss, or name the extra that installs it."""
    try:
        import faiss
    except ImportError as error:
        raise MissingExtraError("faiss", "approximate dense search") from error
    return faiss


class GraphSearch:
    """Approximate search by an HNSW graph (faiss).

    Args:
        graph: Graph of faiss.
        vectors: Table of the vectors.
    """

    def __init__(self, graph: Any, vectors: VectorTable) -> None:
        self._graph, self.vectors = graph, vectors

    @classmethod
    def build(cls, vectors: VectorTable, folder: Path) -> None:
        """Build the graph of all vectors and write it to a folder.

        Args:
            vectors: Table of the vectors.
            folder: Folder to write to.
        """
        faiss = load_faiss()
        graph = faiss.IndexHNSWFlat(vectors.dim, _LINKS, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = _BUILD_WIDTH
        for start in range(0, vectors.n_rows, CHUNK):
            graph.add(vectors.chunk(start, start + CHUNK))
        faiss.write_index(graph, str(folder / GRAPH))

    @classmethod
    def open(cls, vectors: VectorTable, folder: Path) -> GraphSearch:
        """Read the graph of a folder.

        Args:
            vectors: Table of the vectors.
            folder: Folder of the graph.
        """
        path = folder / GRAPH
        try:
            graph = load_faiss().read_index(str(path))
        except RuntimeError as error:
            raise StoreError(f"{path}: damaged; run `biograft index` again") from error
        if (graph.ntotal, graph.d) != (vectors.n_rows, vectors.dim):
            raise StoreError(f"{path}: belongs to other vectors; run `biograft index` again")
        try:
            _check_graph(graph)
        except ValueError as error:
            raise DENSE_INDEX.damaged(path, error) from error
        return cls(graph, vectors)

    def search(self, queries: Vectors, k: int) -> RowHits:
        """Find approximately the k best rows of each query: queries (n, dim).

        Args:
            queries: Query vectors: (n, dim).
            k: Number of rows of each.
        """
        hits = no_hits(len(queries), k)
        n_hits = min(k, self.vectors.n_rows)
        if not n_hits or not len(queries):
            return hits
        self._graph.hnsw.efSearch = max(_SEARCH_WIDTH, 2 * k)
        _, rows = self._graph.search(np.ascontiguousarray(queries), n_hits)
        rows, scores = rank(rescore(self.vectors, queries, rows), rows)
        hits.rows[:, :n_hits], hits.scores[:, :n_hits] = rows, scores
        return hits


def _check_graph(graph: Any) -> None:
    """Refuse links that lead out of the graph, or to a vector that is not on their level.

    faiss follows links unchecked; it validates some of this when it reads, but no levels.
    """
    faiss = load_faiss()
    storage = faiss.downcast_index(graph.storage) if isinstance(graph, faiss.IndexHNSW) else None
    if not isinstance(storage, faiss.IndexFlat) or storage.d != graph.d:
        raise ValueError("expected a graph of whole vectors")
    check_length("codes", _view(storage.codes), graph.ntotal * graph.d * 4)
    hnsw = graph.hnsw
    levels, offsets, links = _view(hnsw.levels), _view(hnsw.offsets), _view(hnsw.neighbors)
    before = faiss.vector_to_array(hnsw.cum_nneighbor_per_level).astype(np.int64)
    check_length("levels", levels, graph.ntotal)
    check_length("offsets", offsets, graph.ntotal + 1)
    check_ends("levels below", before, before[-1] if len(before) else 0)
    check_range("levels", levels, 1, len(before) - 1)
    check_ends("offsets", offsets, len(links))
    if (np.diff(offsets.astype(np.int64)) != before[levels]).any():
        raise ValueError("offsets: expected as many links as there are on the levels of a vector")
    check_range("links", links, -1, graph.ntotal - 1)
    for level in range(1, int(levels.max(initial=1))):
        on_level = offsets[:-1][levels > level].astype(np.int64)
        targets = links[on_level[:, None] + np.arange(before[level], before[level + 1])]
        if (levels[targets[targets >= 0]] <= level).any():
            raise ValueError("links: one leads to a vector that is not on its level")
    if graph.ntotal:
        check_range("entry", np.array(hnsw.entry_point), 0, graph.ntotal - 1)
        check_range("highest level", np.array(hnsw.max_level), 0, int(levels[hnsw.entry_point]) - 1)


def _view(vector: Any) -> Any:
    """View a C++ vector as an array, without a copy."""
    size = vector.size()
    return load_faiss().rev_swig_ptr(vector.data(), size) if size else np.zeros(0, np.int64)
