"""The is-a hierarchy: whether it turns back on itself."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.uint32]
MAX_PEELS = 200
"""Deeper hierarchies than this are peeled one concept at a time."""


def find_cycle(children: Rows, parents: Rows, n_concepts: int) -> tuple[int, list[int]]:
    """Count the concepts that no peeling frees, and give one cycle among them (empty: none).

    Peeling takes away, again and again, every concept that has no parent left or no child left;
    in a hierarchy without cycles nothing remains.
    """
    for _ in range(MAX_PEELS):
        if not len(children):
            break
        has_parent = np.zeros(n_concepts, bool)
        has_child = np.zeros(n_concepts, bool)
        has_parent[children] = True
        has_child[parents] = True
        kept = has_parent[parents] & has_child[children]
        if kept.all():
            break
        children, parents = children[kept], parents[kept]
    else:
        children, parents = _peel_one_by_one(children, parents)
    if not len(children):
        return 0, []
    return len(np.unique(children)), _walk(children, parents)


def _peel_one_by_one(children: Rows, parents: Rows) -> tuple[Rows, Rows]:
    """Peel what is left of a very deep hierarchy, in time linear in its edges.

    Here only concepts without parents are taken away, so that what hangs below a cycle stays.
    """
    below: dict[int, list[int]] = {}
    n_parents: dict[int, int] = {}
    for child, parent in zip(children.tolist(), parents.tolist(), strict=True):
        below.setdefault(parent, []).append(child)
        n_parents[child] = n_parents.get(child, 0) + 1
    queue = [node for node in below if node not in n_parents]
    for node in queue:
        for child in below.get(node, ()):
            n_parents[child] -= 1
            if not n_parents[child]:
                queue.append(child)
    free = np.array(sorted(queue), np.uint32)
    kept = ~np.isin(parents, free)
    return children[kept], parents[kept]


def _walk(children: Rows, parents: Rows) -> list[int]:
    """Go from parent to parent until a concept comes again."""
    up = dict(zip(children.tolist(), parents.tolist(), strict=True))
    path: list[int] = []
    seen: dict[int, int] = {}
    node = int(children[0])
    while node not in seen:
        seen[node] = len(path)
        path.append(node)
        node = up[node]
    return [*path[seen[node] :], node]
