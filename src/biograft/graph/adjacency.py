"""Undirected adjacency of a store's entities in CSR form, without loops and duplicates.

Entities are ordered by degree, highest first, so that frequent ones are close together in memory.
A *position* is the index in that order; entities without neighbours come last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from biograft.compute import njit

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Adjacency:
    """Neighbours by position: those of ``p`` are ``neighbours[ends[p] : ends[p + 1]]``."""

    ends: Longs  # (n_linked + 1,)
    neighbours: Ints  # positions, ascending for each entity
    row_of: Ints  # (n_entities,) row of the store by position
    position_of: Ints  # (n_entities,) position by row of the store

    @property
    def n_entities(self) -> int:
        """Number of entities, with or without neighbours."""
        return len(self.row_of)

    @property
    def n_linked(self) -> int:
        """Number of entities with neighbours, which have the first positions."""
        return len(self.ends) - 1

    @property
    def degrees(self) -> Longs:
        """Number of neighbours of each linked entity."""
        return np.diff(self.ends)


def build_adjacency(heads: npt.ArrayLike, tails: npt.ArrayLike, n_entities: int) -> Adjacency:
    """Join heads with tails, ignoring relation, direction and duplicates."""
    a, b = np.asarray(heads, np.int64), np.asarray(tails, np.int64)
    a, b = a[a != b], b[a != b]
    n = max(n_entities, 1)
    pairs = np.concatenate((a * n + b, b * n + a))
    pairs.sort()
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    degrees = np.bincount(pairs // n, minlength=n_entities)
    row_of = np.argsort(-degrees, kind="stable").astype(np.int32)
    position_of = np.empty(n_entities, np.int32)
    position_of[row_of] = np.arange(n_entities, dtype=np.int32)
    sorted_pairs = position_of[pairs // n].astype(np.int64) * n + position_of[pairs % n]
    sorted_pairs.sort()
    n_linked = int(np.count_nonzero(degrees))
    ends = np.concatenate(([0], np.cumsum(degrees[row_of[:n_linked]]))).astype(np.int64)
    return Adjacency(ends, (sorted_pairs % n).astype(np.int32), row_of, position_of)


def stationary_distribution(graph: Adjacency) -> tuple[Floats, Floats]:
    """Return the probability to be at a *neighbour* of the start after many even or odd steps.

    It is the neighbour's degree over the sum of degrees in its connected component, except that in
    a bipartite component a walk is at a neighbour after odd steps only.
    """
    component, bipartite = _components(graph.ends, graph.neighbours)
    degrees = graph.degrees.astype(np.float64)
    volumes = np.bincount(component, weights=degrees) if len(component) else np.zeros(0)
    ratio = degrees / volumes[component]
    in_bipartite = bipartite[component]
    return np.where(in_bipartite, 0.0, ratio), np.where(in_bipartite, 2 * ratio, ratio)


@njit()
def _components(ends: Longs, neighbours: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Number the connected components, and find which of them are bipartite."""
    n = len(ends) - 1
    component = np.full(n, -1, np.int32)
    side = np.zeros(n, np.uint8)
    bipartite = np.ones(n, np.bool_)
    queue = np.empty(n, np.int32)
    n_components = 0
    for start in range(n):
        if component[start] >= 0:
            continue
        component[start], queue[0] = n_components, start
        first, last = 0, 1
        while first < last:
            u = queue[first]
            first += 1
            for k in range(ends[u], ends[u + 1]):
                v = neighbours[k]
                if component[v] < 0:
                    component[v], side[v] = n_components, 1 - side[u]
                    queue[last] = v
                    last += 1
                elif side[v] == side[u]:
                    bipartite[n_components] = False
        n_components += 1
    return component, bipartite
