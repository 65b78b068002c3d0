"""Who is joined to whom in a store: each pair once, both ways, no entity to itself.

Entities stand in *places* here, the one with most neighbours first: what is read most lies close
together in memory. Those without neighbours have the last places, and take no part in any sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Adjacency:
    """Neighbours by place: those of place ``p`` are ``neighbours[ends[p] : ends[p + 1]]``."""

    ends: Longs  # (n_linked + 1,)
    neighbours: Ints  # places, ascending for each entity
    row_at: Ints  # (n_entities,) row of the store by place
    place_of: Ints  # (n_entities,) place by row of the store

    @property
    def n_entities(self) -> int:
        """How many entities there are, with neighbours or without."""
        return len(self.row_at)

    @property
    def n_linked(self) -> int:
        """How many entities have neighbours; theirs are the first places."""
        return len(self.ends) - 1

    @property
    def degrees(self) -> Longs:
        """How many neighbours each linked entity has."""
        return np.diff(self.ends)


def build_adjacency(heads: npt.ArrayLike, tails: npt.ArrayLike, n_entities: int) -> Adjacency:
    """Join heads with tails, whatever the relation, its direction and how often it is told."""
    a, b = np.asarray(heads, np.int64), np.asarray(tails, np.int64)
    a, b = a[a != b], b[a != b]
    n = max(n_entities, 1)
    pairs = np.concatenate((a * n + b, b * n + a))
    pairs.sort()
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    degrees = np.bincount(pairs // n, minlength=n_entities)
    row_at = np.argsort(-degrees, kind="stable").astype(np.int32)
    place_of = np.empty(n_entities, np.int32)
    place_of[row_at] = np.arange(n_entities, dtype=np.int32)
    placed = place_of[pairs // n].astype(np.int64) * n + place_of[pairs % n]
    placed.sort()
    n_linked = int(np.count_nonzero(degrees))
    ends = np.concatenate(([0], np.cumsum(degrees[row_at[:n_linked]]))).astype(np.int64)
    return Adjacency(ends, (placed % n).astype(np.int32), row_at, place_of)


def settle(graph: Adjacency) -> tuple[Floats, Floats]:
    """Give where a walk in each part of the graph ends up, after very many even or odd steps.

    Both are shares for a *neighbour* of where the walk began: its number of neighbours over that
    of its whole part, except that in a part with two sides (each entity joined to the other side
    only) a walk can be at a neighbour after odd steps only.
    """
    part, sided = _parts(graph.ends, graph.neighbours)
    degrees = graph.degrees.astype(np.float64)
    volumes = np.bincount(part, weights=degrees) if len(part) else np.zeros(0)
    share = degrees / volumes[part]
    two_sided = sided[part]
    return np.where(two_sided, 0.0, share), np.where(two_sided, 2 * share, share)


@numba.njit(cache=True, nogil=True)
def _parts(ends: Longs, neighbours: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Number the connected parts, and say which of them have two sides."""
    n = len(ends) - 1
    part = np.full(n, -1, np.int32)
    side = np.zeros(n, np.uint8)
    sided = np.ones(n, np.bool_)
    queue = np.empty(n, np.int32)
    n_parts = 0
    for start in range(n):
        if part[start] >= 0:
            continue
        part[start], queue[0] = n_parts, start
        first, last = 0, 1
        while first < last:
            u = queue[first]
            first += 1
            for k in range(ends[u], ends[u + 1]):
                v = neighbours[k]
                if part[v] < 0:
                    part[v], side[v] = n_parts, 1 - side[u]
                    queue[last] = v
                    last += 1
                elif side[v] == side[u]:
                    sided[n_parts] = False
        n_parts += 1
    return part, sided
