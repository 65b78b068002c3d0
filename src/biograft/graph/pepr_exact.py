"""Personalised PageRank of one entity, solved by conjugate gradients to a stated error bound.

With W the 0/1 adjacency, D the numbers of neighbours, c = 1 - damping and y = p / D, the fixed
point of p = c W D^-1 p + b solves (D - c W) y = b, which is symmetric and positive definite; D is
the preconditioner. The smallest eigenvalue of I - c D^-1/2 W D^-1/2 is at least the damping, so
with residual r the error of p(u) is at most sqrt(D_u) sqrt(r D^-1 r) / damping.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.compiled import njit
from biograft.graph.adjacency import Adjacency, Floats, Ints, Longs
from biograft.graph.config import MAX_ROUNDS

_MAX_ROUNDS = 5000


def solve(graph: Adjacency, right: Floats, *, damping: float, tolerance: float) -> Floats:
    """Solve for y so that the error of D y is at most ``tolerance``."""
    if not graph.n_linked:
        return np.zeros(0)
    max_root_degree = np.sqrt(float(graph.degrees[0]))
    y: Floats = _solve(
        graph.ends,
        graph.neighbours,
        right.copy(),
        1 - damping,
        tolerance * damping / max_root_degree,
    )
    return y


def solve_at_neighbours(
    graph: Adjacency, source: int, *, damping: float, tolerance: float
) -> Floats:
    """Return p at the source's neighbours, in their order, within ``tolerance``."""
    own_neighbours = graph.neighbours[graph.ends[source] : graph.ends[source + 1]]
    right = np.zeros(graph.n_linked)
    right[source] = damping
    degrees = graph.ends[own_neighbours + 1] - graph.ends[own_neighbours]
    # positions are ordered by degree, so the first neighbour has the largest
    threshold = tolerance * damping / np.sqrt(float(degrees[0]))
    y: Floats = _solve(graph.ends, graph.neighbours, right, 1 - damping, threshold)
    return y[own_neighbours] * degrees


@njit()
def _solve(ends: Longs, neighbours: Ints, r: Floats, c: float, threshold: float) -> Floats:
    """Run conjugate gradients until the residual is small; ``r`` is overwritten."""
    y, p, q = np.zeros_like(r), np.zeros_like(r), np.empty_like(r)
    before = 1.0
    for _ in range(_MAX_ROUNDS):
        rho = _residual_norm(ends, r)
        if np.sqrt(rho) <= threshold:
            break
        for u in range(len(r)):
            p[u] = r[u] / (ends[u + 1] - ends[u]) + rho / before * p[u]
        step = rho / _multiply(ends, neighbours, p, q, c)
        for u in range(len(r)):
            y[u] += step * p[u]
            r[u] -= step * q[u]
        before = rho
    return y


@njit()
def _residual_norm(ends: Longs, r: Floats) -> float:
    """Return r D^-1 r."""
    total = 0.0
    for u in range(len(r)):
        total += r[u] * r[u] / (ends[u + 1] - ends[u])
    return total


@njit()
def _multiply(ends: Longs, neighbours: Ints, p: Floats, q: Floats, c: float) -> float:
    """Set q to (D - c W) p and return p q."""
    product = 0.0
    for u in range(len(p)):
        first, stop = ends[u], ends[u + 1]
        q[u] = (stop - first) * p[u] - c * sum_at(neighbours[first:stop], p)
        product += p[u] * q[u]
    return product


@njit(fastmath={"reassoc", "nsz", "contract"})
def sum_at(positions: Ints, values: Floats) -> float:
    """Sum the values at some positions."""
    total = values[0] * 0
    for position in positions:
        total += values[position]
    return total  # type: ignore[no-any-return]


N_STEPS = MAX_ROUNDS - 1
"""Steps of a walk that are computed exactly."""

_SPARSE = 4
"""A third step that reaches less than 1 / 4 of the graph is cleared by its list."""


class Links(NamedTuple):
    """A graph whose hubs have the first positions, for walks that do not pass a hub."""

    starts: Longs
    """The neighbours of u that are no hubs are ``neighbours[starts[u] : ends[u + 1]]``."""
    ends: Longs
    neighbours: Ints
    n_hubs: int


@njit()
def first_steps(
    links: Links,
    inverse: npt.NDArray[Any],
    sources: Ints,
    out: Floats,
) -> None:
    """Fill ``out`` (neighbours of all sources, steps 1 to 5) with the mass after each step.

    Walks that start at a hub, end there or pass one are left out after the first step. ``inverse``
    is one over the degree; its type sets the precision.
    """
    starts, ends, neighbours, n_hubs = links
    n = len(ends) - 1
    two, three, four = np.zeros_like(inverse), np.zeros_like(inverse), np.zeros_like(inverse)
    listed, touched = np.empty(n, np.int32), np.empty(n, np.int32)
    start = 0
    for source in sources:
        stop = start + ends[source + 1] - ends[source]
        for k in range(start, stop):
            out[k, 0] = inverse[source]
        if source < n_hubs:
            start = stop
            continue
        n_listed, volume = _second(links, inverse, source, two, listed)
        n_touched = -1
        if volume < n // _SPARSE:
            n_touched = _third_listed(links, two, listed[:n_listed], three, touched)
        else:
            _third(links, inverse, two, listed[:n_listed], three)
        for k in range(n_listed):
            v = listed[k]
            four[v] = sum_at(neighbours[starts[v] : ends[v + 1]], three) * inverse[v]
        at = start + starts[source] - ends[source]
        for u in neighbours[starts[source] : ends[source + 1]]:
            out[at, 1] = two[u]
            out[at, 2] = three[u] * (ends[u + 1] - ends[u])
            out[at, 3] = sum_at(neighbours[starts[u] : ends[u + 1]], three)
            out[at, 4] = sum_at(neighbours[starts[u] : ends[u + 1]], four)
            at += 1
        _clear(two, three, listed[:n_listed], touched, n_touched)
        start = stop


@njit()
def _second(
    links: Links,
    inverse: npt.NDArray[Any],
    source: int,
    two: npt.NDArray[Any],
    listed: Ints,
) -> tuple[int, int]:
    """Take two steps; list the positions reached and sum their degrees."""
    starts, ends, neighbours, _ = links
    n_listed, volume = 0, 0
    for k in range(starts[source], ends[source + 1]):
        u = neighbours[k]
        mass = inverse[source] * inverse[u]
        for m in range(starts[u], ends[u + 1]):
            v = neighbours[m]
            if two[v] == 0:
                listed[n_listed] = v
                n_listed += 1
                volume += ends[v + 1] - starts[v]
            two[v] += mass
    return n_listed, volume


@njit()
def _third(
    links: Links,
    inverse: npt.NDArray[Any],
    two: npt.NDArray[Any],
    listed: Ints,
    three: npt.NDArray[Any],
) -> None:
    """Take the third step, each mass divided by the degree of its end."""
    starts, ends, neighbours, _ = links
    for v in listed:
        mass = two[v] * inverse[v]
        for m in range(starts[v], ends[v + 1]):
            three[neighbours[m]] += mass
    for w in range(len(three)):
        three[w] *= inverse[w]


@njit()
def _third_listed(
    links: Links,
    two: npt.NDArray[Any],
    listed: Ints,
    three: npt.NDArray[Any],
    touched: Ints,
) -> int:
    """Take the third step where few positions are reached, and list them."""
    starts, ends, neighbours, _ = links
    n_touched = 0
    for v in listed:
        mass = two[v] / (ends[v + 1] - ends[v])
        for m in range(starts[v], ends[v + 1]):
            w = neighbours[m]
            if three[w] == 0:
                touched[n_touched] = w
                n_touched += 1
            three[w] += mass
    for w in touched[:n_touched]:
        three[w] /= ends[w + 1] - ends[w]
    return n_touched


@njit()
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
