"""The is-a hierarchy of a store by row: parents, children, ancestors, descendants.

Ancestors are found by climbing: a concept has few, even in a hierarchy of millions of concepts
with several parents each (decision 027). Cycles end because each concept is visited once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from biograft.arrays import Array, Flags
from biograft.kb.tables import view

Rows = Array

_MANY = 2_000
"""A walk that has met more concepts continues level by level in arrays."""
_NARROW = 64
"""A level of fewer concepts is walked in plain Python."""


class _Edges:
    """Directed edges in compressed form: the targets of row r are those between its two ends."""

    def __init__(self, origins: Rows, targets: Rows, n: int) -> None:
        """Group edges by origin; the order within a group is kept."""
        if len(origins) and (origins[1:] < origins[:-1]).any():
            order = (origins.astype(np.uint64) << np.uint64(32)) | np.arange(
                len(origins), dtype=np.uint64
            )
            order.sort()
            targets = targets[(order & np.uint64(0xFFFFFFFF)).astype(np.intp)]
        self.ends: Any = np.zeros(n + 1, np.int64)
        np.cumsum(np.bincount(origins, minlength=n), out=self.ends[1:])
        self.targets: Any = np.ascontiguousarray(targets, np.uint32)
        self._end_of, self._target_at = view(self.ends), view(self.targets)

    def of(self, row: int) -> Sequence[int]:
        """Return the targets of one row."""
        return self._target_at[self._end_of[row] : self._end_of[row + 1]]

    def of_all(self, rows: Rows) -> Rows:
        """Return the targets of some rows, one row after the other."""
        starts, sizes = self.ends[rows], self.ends[rows + 1] - self.ends[rows]
        shift = np.repeat(starts - np.cumsum(sizes) + sizes, sizes)
        targets: Rows = self.targets[shift + np.arange(len(shift))]
        return targets

    def mark(self, rows: Rows) -> Flags:
        """Mark rows and all that can be reached from any of them."""
        marked = np.zeros(len(self.ends) - 1, bool)
        first = np.empty(len(marked), np.int64)
        marked[rows] = True
        while len(rows):
            rows = self._fresh(rows, marked, first)
        return marked

    def _fresh(self, rows: Rows, seen: Flags, first: Rows) -> Rows:
        """Return the targets of rows that were not seen, in order; ``first`` is scratch."""
        targets = self.of_all(rows)
        targets = targets[~seen[targets]]
        positions = np.arange(len(targets))
        first[targets[::-1]] = positions[::-1]  # the last value written is that of the first
        targets = np.asarray(targets[first[targets] == positions])
        seen[targets] = True
        return targets

    def reach(self, row: int) -> list[int]:
        """Return all rows that can be reached from one, nearest first, each once."""
        before = self.steps(row, most=_MANY)
        return list(before)[1:] if len(before) <= _MANY else self._reach_many(row)

    def steps(self, row: int, goal: int = -1, most: float = math.inf) -> dict[int, int]:
        """Return all rows that can be reached from one, each with the row before it.

        Nearest first, itself before all (-1). The walk ends early when it has met ``goal``, or
        more than ``most`` rows.
        """
        ends, targets = self._end_of, self._target_at
        before = {row: -1}
        for current in (queue := [row]):
            if goal in before or len(queue) > most:
                break
            for target in targets[ends[current] : ends[current + 1]]:
                if target not in before:
                    before[target] = current
                    queue.append(target)
        return before

    def _reach_many(self, row: int) -> list[int]:
        """Do as ``reach``, one level after the other."""
        seen = np.zeros(len(self.ends) - 1, bool)
        first = np.empty(len(seen), np.int64)
        seen[row] = True
        queue: list[int] = []
        level = [row]
        while level:
            following = self._next_level(level, seen, first)
            queue += following
            level = following
        return queue

    def _next_level(self, level: list[int], seen: Any, first: Rows) -> list[int]:
        """Return the targets of a level that were not seen, in order; ``first`` is scratch."""
        if len(level) < _NARROW:
            marked, following = memoryview(seen), []
            for current in level:
                for target in self.of(current):
                    if not marked[target]:
                        marked[target] = True
                        following.append(target)
            return following
        return list(self._fresh(np.array(level), seen, first).tolist())


class Hierarchy:
    """The is-a relations of a store; concepts are given by row.

    Args:
        heads: Row of the child of each relation.
        tails: Row of its parent.
        n_concepts: Number of concepts.
    """

    def __init__(self, heads: Rows, tails: Rows, n_concepts: int) -> None:
        self.heads, self.tails, self._n = heads, tails, n_concepts

    @cached_property
    def _up(self) -> _Edges:
        return _Edges(self.heads, self.tails, self._n)

    @cached_property
    def _down(self) -> _Edges:
        return _Edges(self.tails, self.heads, self._n)

    def n_children(self) -> Rows:
        """Return how many direct children each concept has."""
        return np.bincount(self.tails, minlength=self._n)

    def parents(self, row: int) -> Sequence[int]:
        """Return the direct parents."""
        return self._up.of(row)

    def children(self, row: int) -> Sequence[int]:
        """Return the direct children."""
        return self._down.of(row)

    def ancestors(self, row: int) -> list[int]:
        """Return all ancestors, nearest first, each once."""
        return self._up.reach(row)

    def descendants(self, row: int) -> list[int]:
        """Return all descendants, nearest first, each once."""
        return self._down.reach(row)

    def related(self, rows: Rows, *, up: bool, own: bool, direct: bool) -> Flags:
        """Mark the concepts below some, or above them.

        Args:
            rows: Rows of the concepts.
            up: Those above, not those below.
            own: These concepts, too.
            direct: Parents or children only.
        """
        edges = self._up if up else self._down
        near = edges.of_all(rows)
        if direct:
            marked = np.zeros(self._n, bool)
            marked[near] = True
        else:
            marked = edges.mark(near)
        if own or len(rows) == 1:  # a concept in a circle is not below itself
            marked[rows] = own
        return marked

    def is_a(self, row: int, ancestor: int) -> bool:
        """Whether a concept is the same as another or below it.

        Args:
            row: Row of the concept.
            ancestor: Row of the other.
        """
        return ancestor in self._up.steps(row, ancestor)

    def path(self, row: int, other: int) -> tuple[list[int], list[int]]:
        """Return the shortest way between two concepts over an ancestor of both, or itself.

        The first list climbs from the one to the common ancestor, the second goes down from there
        to the other; both have the ancestor. Two empty lists: they have none in common. Of equally
        short ways the one whose ancestor is nearest to the first concept is taken.

        Args:
            row: Row of the one concept.
            other: Row of the other.
        """
        up, down = self._up.steps(row), self._up.steps(other)
        heights = {at: len(_climbed(down, at)) for at in up if at in down}
        if not heights:
            return [], []
        common = min(heights, key=lambda at: len(_climbed(up, at)) + heights[at])
        return _climbed(up, common)[::-1], _climbed(down, common)

    def find_cycle(self) -> tuple[int, list[int]]:
        """Return how many concepts are on cycles or between them, and one of the cycles."""
        inner = self.n_children()[self.heads] > 0  # no leaf is on a cycle, and most are leaves
        rest = Hierarchy(self.heads[inner], self.tails[inner], self._n)._peeled()._peeled()
        up = dict(zip(rest.heads.tolist(), rest.tails.tolist(), strict=True))
        if not up:
            return 0, []
        seen: dict[int, int] = {}
        row = next(iter(up))
        while row not in seen:
            seen[row] = len(seen)
            row = up[row]
        return len(up), [*list(seen)[seen[row] :], row]

    def _peeled(self) -> Hierarchy:
        """Return the hierarchy upside down, without the concepts that are below no cycle.

        They are removed from the top, level by level.
        """
        n_parents = np.bincount(self.heads, minlength=self._n)
        free = np.flatnonzero(n_parents == 0)
        last = np.empty(self._n, np.int64)
        while len(free):
            below = self._down.of_all(free)
            np.subtract.at(n_parents, below, 1)
            below = below[n_parents[below] == 0]
            positions = np.arange(len(below))
            last[below] = positions
            free = below[last[below] == positions]  # each once
        kept = n_parents[self.tails] > 0
        return Hierarchy(self.tails[kept], self.heads[kept], self._n)


def _climbed(before: dict[int, int], row: int) -> list[int]:
    """Return the rows from one back to the beginning of a walk."""
    rows = []
    while row >= 0:
        rows.append(row)
        row = before[row]
    return rows
