"""Personalised entity PageRank of one entity, solved to a stated bound.

With W the 0/1 adjacency, D the numbers of neighbours, c = 1 - damping and y = p / D, the fixed
point of p = c W D^-1 p + b solves (D - c W) y = b, which is symmetric and positive: conjugate
gradients with D as the preconditioner. The smallest eigenvalue of I - c D^-1/2 W D^-1/2 is at
least the damping, so with r what is left over, no p(u) is wrong by more than
sqrt(D_u) sqrt(r D^-1 r) / damping.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from biograft.graph.adjacency import Adjacency, Floats, Ints, Longs

_MOST_ROUNDS = 5000


def solve(graph: Adjacency, right: Floats, *, damping: float, tolerance: float) -> Floats:
    """Solve for y so that D y is right to ``tolerance`` everywhere."""
    if not graph.n_linked:
        return np.zeros(0)
    reach = np.sqrt(float(graph.degrees[0]))
    return _solve(
        graph.ends, graph.neighbours, right.copy(), 1 - damping, tolerance * damping / reach
    )


def solve_at_neighbours(
    graph: Adjacency, source: int, *, damping: float, tolerance: float
) -> Floats:
    """Give p at the source's own neighbours, in their order, right to ``tolerance``."""
    near = graph.neighbours[graph.ends[source] : graph.ends[source + 1]]
    right = np.zeros(graph.n_linked)
    right[source] = damping
    degrees = graph.ends[near + 1] - graph.ends[near]
    # the first neighbour has the most neighbours itself: places are in that order
    small = tolerance * damping / np.sqrt(float(degrees[0]))
    y = _solve(graph.ends, graph.neighbours, right, 1 - damping, small)
    return y[near] * degrees


@numba.njit(cache=True, nogil=True)
def _solve(ends: Longs, neighbours: Ints, r: Floats, c: float, small: float) -> Floats:
    """Run conjugate gradients until the remainder is small; ``r`` is used up."""
    y, p, q = np.zeros_like(r), np.zeros_like(r), np.empty_like(r)
    before = 1.0
    for _ in range(_MOST_ROUNDS):
        rho = _measure(ends, r)
        if np.sqrt(rho) <= small:
            break
        for u in range(len(r)):
            p[u] = r[u] / (ends[u + 1] - ends[u]) + rho / before * p[u]
        step = rho / _multiply(ends, neighbours, p, q, c)
        for u in range(len(r)):
            y[u] += step * p[u]
            r[u] -= step * q[u]
        before = rho
    return y


@numba.njit(cache=True, nogil=True)
def _measure(ends: Longs, r: Floats) -> float:
    """Give r D^-1 r."""
    total = 0.0
    for u in range(len(r)):
        total += r[u] * r[u] / (ends[u + 1] - ends[u])
    return total


@numba.njit(cache=True, nogil=True)
def _multiply(ends: Longs, neighbours: Ints, p: Floats, q: Floats, c: float) -> float:
    """Set q to (D - c W) p and give p q."""
    product = 0.0
    for u in range(len(p)):
        first, stop = ends[u], ends[u + 1]
        q[u] = (stop - first) * p[u] - c * gather(neighbours[first:stop], p)
        product += p[u] * q[u]
    return product


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "nsz", "contract"})
def gather(places: Ints, values: Floats) -> float:
    """Sum the values at some places."""
    total = values[0] * 0
    for place in places:
        total += values[place]
    return total  # type: ignore[no-any-return]


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
