"""Walks through hubs: the steps of all walks that pass an entity with very many neighbours.

Following each walk through a hub takes, for every neighbour of the hub, as many steps as the hub
has neighbours: quadratic time. Walks are therefore split at the first hub between their ends. If
``f_j`` is the mass that is at hub h after j steps, without a hub before, the mass after k steps at
an entity u is that of the walks without a hub, plus the sum over h and j of ``f_j P^(k-j)(h, u)``.
Both factors come from walks that start at the hub: walks are reversible, so that the mass from a
source s at h is that from h at s, times the neighbours of h over those of s. A hub takes time in
proportion to the number of edges.
"""

from __future__ import annotations

import numpy as np

from biograft.compiled import njit
from biograft.graph.adjacency import Adjacency, Floats
from biograft.graph.pepr_exact import N_STEPS, Links, sum_at

_COST = 50
"""Time of a hub by edge, in steps of walks that are followed one by one."""


def find_hubs(graph: Adjacency) -> Links:
    """Find the hubs: it saves time to treat the walks through them together."""
    n_hubs = count_hubs(graph)
    owners = np.repeat(np.arange(graph.n_linked), graph.degrees)
    n_skipped = np.bincount(owners[graph.neighbours < n_hubs], minlength=graph.n_linked)
    return Links(graph.ends[:-1] + n_skipped, graph.ends, graph.neighbours, n_hubs)


def count_hubs(graph: Adjacency) -> int:
    """Count the hubs, which have the first positions.

    Entities with equally many neighbours are hubs together, so that those with the same neighbours
    are computed in the same way, and stay equal.
    """
    if not graph.n_linked:
        return 0
    degrees = graph.degrees.astype(np.float64)
    volumes = np.add.reduceat(degrees[graph.neighbours], graph.ends[:-1])
    starts = np.flatnonzero(np.diff(degrees, prepend=-1))  # of entities with equal degrees
    sizes = np.diff(starts, append=len(degrees))
    saved = np.add.reduceat(degrees * volumes, starts)
    are_hubs = saved > _COST * len(graph.neighbours) * sizes
    return int(sizes[: np.argmin(np.append(are_hubs, False))].sum())


def walk_through_hubs(links: Links) -> Floats:
    """Return the mass of walks through hubs for each edge after 2 to 5 steps: (edges, 4).

    It includes the walks that start or end at a hub.
    """
    out = np.zeros((len(links.neighbours) if links.n_hubs else 0, N_STEPS - 1))
    n = len(links.ends) - 1
    walks, alone = np.empty((n, N_STEPS)), np.empty((n, N_STEPS))
    for hub in range(links.n_hubs):
        _walk_from(links, hub, walks, alone)
        _add_walks(links, hub, walks, alone, out)
    return out


@njit()
def _walk_from(links: Links, hub: int, walks: Floats, alone: Floats) -> None:
    """Walk from a hub: anywhere (``walks``), and without hubs on the way (``alone``)."""
    starts, ends, neighbours, _ = links
    n = len(ends) - 1
    here, here_alone = np.zeros(n), np.zeros(n)
    walks[:], alone[:] = 0, 0
    for u in neighbours[ends[hub] : ends[hub + 1]]:
        walks[u, 0] = alone[u, 0] = 1 / (ends[hub + 1] - ends[hub])
    for step in range(1, N_STEPS):
        for u in range(n):
            here[u] = walks[u, step - 1] / (ends[u + 1] - ends[u])
            here_alone[u] = alone[u, step - 1] / (ends[u + 1] - ends[u])
        for u in range(n):
            walks[u, step] = sum_at(neighbours[ends[u] : ends[u + 1]], here)
            alone[u, step] = sum_at(neighbours[starts[u] : ends[u + 1]], here_alone)


@njit()
def _add_walks(links: Links, hub: int, walks: Floats, alone: Floats, out: Floats) -> None:
    """Add the walks of which this is the first hub, and those that start here."""
    starts, ends, neighbours, n_hubs = links
    degree = ends[hub + 1] - ends[hub]
    for source in range(n_hubs, len(ends) - 1):
        first = alone[source] * (degree / (ends[source + 1] - ends[source]))
        if not np.any(first):
            continue
        for m in range(ends[source], ends[source + 1]):
            _add_second_part(first, walks[neighbours[m]], out[m])
        for m in range(ends[source], starts[source]):
            if neighbours[m] == hub:
                out[m] += first[1:]  # the walk ends here
    for m in range(ends[hub], ends[hub + 1]):
        out[m] = walks[neighbours[m], 1:]


@njit()
def _add_second_part(first: Floats, second: Floats, out: Floats) -> None:
    for k in range(N_STEPS - 1):
        for j in range(k + 1):
            out[k] += first[j] * second[k - j]
