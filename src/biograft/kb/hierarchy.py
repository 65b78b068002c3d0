"""The is-a hierarchy: whether it turns back on itself."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.uint32]


def find_cycle(children: Rows, parents: Rows, n_concepts: int) -> tuple[int, list[int]]:
    """Count the concepts that no peeling frees, and give one cycle among them (empty: none).

    Peeling takes away, again and again, every concept that has no parent left or no child left;
    in a hierarchy without cycles nothing remains.
    """
    while len(children):
        has_parent = np.zeros(n_concepts, bool)
        has_child = np.zeros(n_concepts, bool)
        has_parent[children] = True
        has_child[parents] = True
        kept = has_parent[parents] & has_child[children]
        if kept.all():
            break
        children, parents = children[kept], parents[kept]
    if not len(children):
        return 0, []
    return len(np.unique(children)), _walk(children, parents)


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
