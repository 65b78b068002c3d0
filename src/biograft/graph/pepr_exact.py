"""Personalised entity PageRank of one entity, solved to a stated bound.

With W the 0/1 adjacency, D the numbers of neighbours, c = 1 - damping and y = p / D, the fixed
point of p = c W D^-1 p + b solves (D - c W) y = b, which is symmetric and positive: conjugate
gradients with D as the preconditioner. The smallest eigenvalue of I - c D^-1/2 W D^-1/2 is at
least the damping, so with r what is left over, no p(u) is wrong by more than
sqrt(D_u) sqrt(r D^-1 r) / damping.
"""

from __future__ import annotations

import numba
import numpy as np

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
