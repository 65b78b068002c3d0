"""Shares a compiled loop among threads: each does a range of it, and none waits for Python.

What a loop writes for one turn depends on that turn alone, so that the number of threads changes
no number that comes out.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

_WORTH_SHARING = 64
"""Turns below which a loop is done by the thread that asks."""


def n_threads() -> int:
    """Count the cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _crew() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads(), "biograft-embedding")


def in_parts(loop: Callable[..., Any], n: int, *arguments: Any) -> None:
    """Call ``loop(first, last, *arguments)`` so that all of range(n) is done."""
    workers = n_threads()
    if workers == 1 or n < _WORTH_SHARING:
        loop(0, n, *arguments)
        return
    bounds = [n * k // workers for k in range(workers + 1)]
    crew = _crew()
    parts = pairwise(bounds[1:])
    waiting = [crew.submit(loop, first, last, *arguments) for first, last in parts]
    loop(0, bounds[1], *arguments)
    for part in waiting:
        part.result()


L1, L2, L2_SQUARED = 0, 1, 2
FAST = {"reassoc", "contract", "nsz"}
"""What compilers may do with sums; what is no number stays seen."""

Floats = npt.NDArray[Any]
"""Of 32 bits when trained, of 64 where compared with definitions."""


class Tables(NamedTuple):
    """The vectors of a model."""

    entity: Floats  # (entities, dim)
    relation: Floats  # (relations, width)
    projection: Floats  # (relations, dim, width); without relations for TransE


def all_numbers(tables: Tables) -> bool:
    """Whether all vectors are numbers; one that is none, or infinite, spoils the sum."""
    with np.errstate(invalid="ignore"):
        return all(bool(np.isfinite(table.sum(dtype=np.float64))) for table in tables)


@numba.njit(fastmath=FAST, cache=True, nogil=True)
def distance(head: Floats, relation: Floats, tail: Floats, norm: int) -> Any:
    """Measure from head plus relation to tail."""
    total = head.dtype.type(0)
    if norm == L1:
        for a in range(len(head)):
            total += abs(head[a] + relation[a] - tail[a])
        return total
    for a in range(len(head)):
        gap = head[a] + relation[a] - tail[a]
        total += gap * gap
    return np.sqrt(total) if norm == L2 else total


@numba.njit(fastmath=FAST, cache=True, nogil=True)
def add_slopes(
    ends: tuple[Floats, Floats, Floats],
    out: tuple[Floats, Floats, Floats],
    norm: int,
    factor: Any,
    length: Any,
) -> None:
    """Add ``factor`` times the slope of a distance by head, relation and tail.

    Where the distance is 0 its slope is taken for 0. ``length`` is the distance.
    """
    head, relation, tail = ends
    by_head, by_relation, by_tail = out
    if norm == L1:
        for a in range(len(head)):
            slope = factor * np.sign(head[a] + relation[a] - tail[a])
            by_head[a] += slope
            by_relation[a] += slope
            by_tail[a] -= slope
        return
    scale = head.dtype.type(2) * factor
    if norm == L2:
        scale = factor / length if length > 0 else head.dtype.type(0)
    for a in range(len(head)):
        slope = scale * (head[a] + relation[a] - tail[a])
        by_head[a] += slope
        by_relation[a] += slope
        by_tail[a] -= slope


@numba.njit(fastmath=FAST, cache=True, nogil=True)
def project(vector: Floats, matrix: Floats, out: Floats) -> None:
    """Multiply a row vector with a relation's matrix; four rows of it at once."""
    n_rows, width = matrix.shape
    out[:] = 0
    whole = n_rows - n_rows % 4
    for a in range(0, whole, 4):
        x0, x1, x2, x3 = vector[a], vector[a + 1], vector[a + 2], vector[a + 3]
        for b in range(width):
            out[b] += (
                x0 * matrix[a, b]
                + x1 * matrix[a + 1, b]
                + x2 * matrix[a + 2, b]
                + x3 * matrix[a + 3, b]
            )
    for a in range(whole, n_rows):
        for b in range(width):
            out[b] += vector[a] * matrix[a, b]


@numba.njit(fastmath=FAST, cache=True, nogil=True)
def project_back(slope: Floats, matrix: Floats, out: Floats) -> None:
    """Turn the slope by a projected vector into that by the vector."""
    for a in range(matrix.shape[0]):
        total = slope.dtype.type(0)
        for b in range(matrix.shape[1]):
            total += matrix[a, b] * slope[b]
        out[a] = total


@numba.njit(fastmath=FAST, cache=True, nogil=True)
def shorten(vector: Floats) -> Any:
    """Bring a vector to length 1 if it is longer; give the length it had, or 0."""
    total = vector.dtype.type(0)
    for a in range(len(vector)):
        total += vector[a] * vector[a]
    if total <= 1:
        return vector.dtype.type(0)
    length = np.sqrt(total)
    for a in range(len(vector)):
        vector[a] /= length
    return length


@numba.njit(fastmath=FAST, cache=True, nogil=True)
def shorten_back(slope: Floats, short: Floats, length: Any) -> None:
    """Turn the slope by a shortened vector into that by the vector, in place."""
    if length == 0:
        return
    along = slope.dtype.type(0)
    for a in range(len(slope)):
        along += slope[a] * short[a]
    for a in range(len(slope)):
        slope[a] = (slope[a] - along * short[a]) / length
