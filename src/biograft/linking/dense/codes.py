"""First pass of exact dense search: inner products of vectors rounded to 8 bits, with bounds.

A vector x is c s + e: whole numbers c from -127 to 127, a scale s, and a rounding error e. For a
query q = c' s' + e', the inner product differs from s s' (c c') by at most |c' s'| |e| + |e'| |x|
(Cauchy and Schwarz). The norms of all errors are known, so that each product of whole numbers gives
an upper and a lower bound of a score. A row whose upper bound is below the k-th largest lower bound
is not among the k best. Nothing else is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.compute import njit

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]

_LARGEST = 127
_RUN = 16
"""Products that are compared together."""
_SLACK = 2.0**-19
"""Bound of the relative error of all sums in float32 below, and of rounding the score itself."""
_ROOM = 2048
"""Rows kept for each query, and four times k; a query that needs more is given up."""


@dataclass(frozen=True, slots=True)
class Rounded:
    """Vectors rounded to 8 bits, with what bounds the error of their products."""

    codes: npt.NDArray[np.int8]  # (n, dim)
    scales: Floats
    errors: Floats  # at least the norms of the rounding errors
    norms: Floats  # at least the norms of the vectors

    @classmethod
    def empty(cls, n: int, dim: int) -> Rounded:
        """Make room for vectors."""
        numbers = (np.zeros(n, np.float32) for _ in range(3))
        return cls(np.zeros((n, dim), np.int8), *numbers)

    def fill(self, start: int, vectors: Floats) -> None:
        """Round vectors and store them from ``start`` on."""
        part = slice(start, start + len(vectors))
        _round(vectors, self.codes[part], self.scales[part], self.errors[part], self.norms[part])


class Candidates(NamedTuple):
    """The rows that may be among the k best of each query."""

    rows: Rows  # (queries, room), in any order
    upper: Floats  # (queries, room): upper bounds of their scores, -inf beyond the rows
    counts: Rows  # (queries,), -1 where there was not enough room
    lower: Floats  # (queries, k): the k largest lower bounds as a heap, the smallest first


def find_candidates(rows: Rounded, queries: Floats, k: int, chunk: int) -> Candidates:
    """Find all rows that may be among the k best of each query."""
    import torch

    n = len(queries)
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
def _round(vectors: Floats, codes: Any, scales: Floats, errors: Floats, norms: Floats) -> None:
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
        for first in range(0, len(row), _RUN):
            run, run_scales = row[first : first + _RUN], scales[first : first + _RUN]
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
def _compact(rows: Rows, upper: Floats, count: int, limit: float) -> int:
    """Drop rows below a limit; return how many are left."""
    n = 0
    for at in range(count):
        if upper[at] >= limit:
            rows[n], upper[n] = rows[at], upper[at]
            n += 1
    return n


@njit()
def _replace_first(heap: Floats, value: float) -> None:
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
