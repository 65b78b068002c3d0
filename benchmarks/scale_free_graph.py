"""A graph that grows as Barabasi and Albert describe, the same for the same seed everywhere."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

Edges = npt.NDArray[np.int32]


@numba.njit(cache=True)
def grow(n_nodes: int, per_node: int, seed: int) -> Edges:
    """Join each new node to ``per_node`` earlier ones, likelier those with many edges."""
    np.random.seed(seed)  # numba's own generator, which knows no other way
    first = per_node + 1  # nodes that are all joined to each other at the beginning
    n_edges = first * (first - 1) // 2 + (n_nodes - first) * per_node
    edges = np.empty((n_edges, 2), np.int32)
    ends = edges.reshape(-1)  # a node stands here once for each of its edges
    k = 0
    for a in range(first):
        for b in range(a):
            edges[k, 0], edges[k, 1] = a, b
            k += 1
    for node in range(first, n_nodes):
        begin = k
        while k < begin + per_node:
            other = ends[np.random.randint(0, 2 * begin)]
            if not np.any(edges[begin:k, 1] == other):
                edges[k, 0], edges[k, 1] = node, other
                k += 1
    return edges
