"""The first five steps of a walk from an entity, exactly, at its own neighbours.

x_k(u) is the chance to be at u after k steps. From the entity outwards, two steps reach only the
neighbours' neighbours, which are listed; the third goes from there to all the graph; the fourth
and fifth are gathered backwards, only where they are needed. So five steps cost two passes over
the neighbourhood of the second step, not five over the graph.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from biograft.graph.adjacency import Floats, Ints, Longs
from biograft.graph.pepr_exact import gather

N_STEPS = 5
"""Steps known exactly."""

_SPARSE = 4
"""A third step that touches less than this part of the graph is cleared by its list."""


@numba.njit(cache=True, nogil=True)
def first_steps(
    ends: Longs, neighbours: Ints, inverse: npt.NDArray[Any], sources: Ints, out: Floats
) -> None:
    """Fill ``out`` (neighbours of all sources in turn, steps 1 to 5).

    ``inverse`` is one over the number of neighbours; its type is the precision of the work.
    """
    n = len(ends) - 1
    two, three, four = np.zeros_like(inverse), np.zeros_like(inverse), np.zeros_like(inverse)
    listed, touched = np.empty(n, np.int32), np.empty(n, np.int32)
    start = 0
    for source in sources:
        stop = start + ends[source + 1] - ends[source]
        n_listed, volume = _second(ends, neighbours, inverse, source, two, listed)
        n_touched = -1
        if volume < n // _SPARSE:
            n_touched = _third_listed(ends, neighbours, two, listed[:n_listed], three, touched)
        else:
            _third(ends, neighbours, inverse, two, listed[:n_listed], three)
        for k in range(n_listed):
            v = listed[k]
            four[v] = gather(neighbours[ends[v] : ends[v + 1]], three) * inverse[v]
        near = neighbours[ends[source] : ends[source + 1]]
        for k in range(len(near)):
            u = near[k]
            out[start + k, 0] = inverse[source]
            out[start + k, 1] = two[u]
            out[start + k, 2] = three[u] * (ends[u + 1] - ends[u])
            out[start + k, 3] = gather(neighbours[ends[u] : ends[u + 1]], three)
            out[start + k, 4] = gather(neighbours[ends[u] : ends[u + 1]], four)
        _clear(two, three, listed[:n_listed], touched, n_touched)
        start = stop


@numba.njit(cache=True, nogil=True)
def _second(
    ends: Longs,
    neighbours: Ints,
    inverse: npt.NDArray[Any],
    source: int,
    two: npt.NDArray[Any],
    listed: Ints,
) -> tuple[int, int]:
    """Go two steps; list where they lead and count how many ways go on from there."""
    n_listed, volume = 0, 0
    for k in range(ends[source], ends[source + 1]):
        u = neighbours[k]
        share = inverse[source] * inverse[u]
        for m in range(ends[u], ends[u + 1]):
            v = neighbours[m]
            if two[v] == 0:
                listed[n_listed] = v
                n_listed += 1
                volume += ends[v + 1] - ends[v]
            two[v] += share
    return n_listed, volume


@numba.njit(cache=True, nogil=True)
def _third(
    ends: Longs,
    neighbours: Ints,
    inverse: npt.NDArray[Any],
    two: npt.NDArray[Any],
    listed: Ints,
    three: npt.NDArray[Any],
) -> None:
    """Take the third step, each chance divided by the number of neighbours where it ends."""
    for v in listed:
        share = two[v] * inverse[v]
        for m in range(ends[v], ends[v + 1]):
            three[neighbours[m]] += share
    for w in range(len(three)):
        three[w] *= inverse[w]


@numba.njit(cache=True, nogil=True)
def _third_listed(
    ends: Longs,
    neighbours: Ints,
    two: npt.NDArray[Any],
    listed: Ints,
    three: npt.NDArray[Any],
    touched: Ints,
) -> int:
    """Do the same where few are reached, and list them."""
    n_touched = 0
    for v in listed:
        share = two[v] / (ends[v + 1] - ends[v])
        for m in range(ends[v], ends[v + 1]):
            w = neighbours[m]
            if three[w] == 0:
                touched[n_touched] = w
                n_touched += 1
            three[w] += share
    for w in touched[:n_touched]:
        three[w] /= ends[w + 1] - ends[w]
    return n_touched


@numba.njit(cache=True, nogil=True)
def _clear(
    two: npt.NDArray[Any], three: npt.NDArray[Any], listed: Ints, touched: Ints, n_touched: int
) -> None:
    for v in listed:
        two[v] = 0
    if n_touched < 0:
        three[:] = 0
        return
    for k in range(n_touched):
        three[touched[k]] = 0
