"""A prefix tree (trie) of token sequences in flat arrays.

It serves constrained decoding (GENRE, GenBioEL) and finding names in text. Nodes are numbered level
by level, so that the children of a node are adjacent, ascending by token, and followed by those of
the next node. A node needs two numbers: its token, and where its children begin. A search that
remembers its node finds the allowed tokens in two look-ups, however many nodes there are. The
arrays are built in bulk and memory-mapped from disk.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.arrays import Flags, Ints
from biograft.artifacts import check_ends, check_length, check_range, open_array, save_array
from biograft.errors import StoreError

Numbers = npt.NDArray[np.integer[Any]]

_KINDS = (np.uint16, np.uint32, np.int64)
"""Types of the arrays; the smallest that fits is used."""
_CHECK_BATCH = 1 << 20
"""Nodes that are checked at once."""


def build_levels(tokens: Numbers, ends: Numbers) -> tuple[Ints, Ints, Ints]:
    """Build the nodes of a trie of concatenated sequences, level by level.

    Return the token of each node (nodes), where the children of each begin (nodes + 1), and the
    node at which each sequence ends.

    Args:
        tokens: Tokens of the sequences, one after the other.
        ends: End of each sequence.
    """
    stops = np.asarray(ends, np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), stops[:-1]]) if len(stops) else stops
    at = np.zeros(len(stops), np.int64)  # the node that each sequence has reached
    levels = [np.zeros(1, np.int64)]
    n_children = []
    n_nodes, level_starts, depth = 1, 0, 0
    active = np.flatnonzero(stops > starts)
    width = int(tokens.max(initial=0)) + 1
    while len(active):
        steps = at[active] * width + tokens[starts[active] + depth]
        distinct, inverse = np.unique(steps, return_inverse=True)
        n_children.append(
            np.bincount(distinct // width - level_starts, minlength=n_nodes - level_starts)
        )
        at[active] = n_nodes + inverse
        levels.append(distinct % width)
        level_starts, n_nodes, depth = n_nodes, n_nodes + len(distinct), depth + 1
        active = active[stops[active] - starts[active] > depth]
    n_children.append(np.zeros(n_nodes - level_starts, np.int64))
    children = 1 + np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(n_children))])
    return np.concatenate(levels), children, at


def check_nodes(children: Numbers, n_nodes: int) -> None:
    """Refuse children that are not those of a tree: those of a node come after it.

    Args:
        children: Start of the children of each node.
        n_nodes: Number of nodes.
    """
    check_length("children", children, n_nodes + 1)
    check_ends("children", children, n_nodes, first=1)
    for start in range(0, n_nodes, _CHECK_BATCH):
        own = children[start : min(start + _CHECK_BATCH, n_nodes)]
        if not bool((own > np.arange(start, start + len(own))).all()):
            raise ValueError("children: a node comes before the one that it follows")


class FlatTrie:
    """Distinct token sequences as a tree; the index of a sequence follows its end node.

    Args:
        tokens: Token that leads to each node; the root's is meaningless.
        children: Start of the children of each node: (nodes + 1,).
        ends: Nodes at which a sequence ends, ascending.
    """

    FILES = ("tokens.npy", "children.npy", "ends.npy")
    root = 0

    def __init__(self, tokens: Numbers, children: Numbers, ends: Numbers) -> None:
        self.tokens = tokens
        """The token that leads to each node; the root's is meaningless."""
        self._children = children  # (nodes + 1,): where the children of each node begin
        self._ends = ends  # nodes at which a sequence ends, ascending

    @classmethod
    def build(cls, tokens: Numbers, ends: Numbers) -> tuple[FlatTrie, Ints]:
        """Build a trie of concatenated sequences.

        Return the trie and the index of each sequence in it; equal sequences share an index.

        Args:
            tokens: Tokens of the sequences, one after the other.
            ends: End of each sequence.
        """
        levels, children, at = build_levels(tokens, ends)
        last, indices = np.unique(at, return_inverse=True)
        return cls(_small(levels), _small(children), _small(last)), indices

    @property
    def n_nodes(self) -> int:
        """The number of nodes, the root included."""
        return len(self.tokens)

    @property
    def depth(self) -> int:
        """The length of the longest sequence."""
        first, levels = 0, -1
        while first < self.n_nodes:
            first, levels = int(self._children[first]), levels + 1
        return levels

    @property
    def n_sequences(self) -> int:
        """The number of distinct sequences."""
        return len(self._ends)

    @property
    def nbytes(self) -> int:
        """The size of the arrays in bytes."""
        return int(self.tokens.nbytes + self._children.nbytes + self._ends.nbytes)

    def children(self, nodes: Numbers) -> tuple[Numbers, Numbers]:
        """Return the range of the children of each node: first and end (exclusive)."""
        return self._children.take(nodes), self._children.take(nodes + 1)

    def child(self, node: int, token: int) -> int:
        """Return the child of a node by a token, -1 if there is none.

        Args:
            node: The node.
            token: The token.
        """
        first, end = int(self._children[node]), int(self._children[node + 1])
        child = first + int(np.searchsorted(self.tokens[first:end], token))
        return child if child < end and self.tokens[child] == token else -1

    def sequence_of(self, nodes: Numbers) -> Ints:
        """Return the index of the sequence that ends at each node, -1 where none does."""
        if not self.n_sequences:
            return np.full(np.shape(nodes), -1, np.int64)
        indices = np.minimum(np.searchsorted(self._ends, nodes), self.n_sequences - 1)
        return np.where(self._ends[indices] == nodes, indices, -1).astype(np.int64)

    def subset(self, keep: Flags) -> tuple[FlatTrie, Ints]:
        """Return the trie of some sequences, and their indices in this one, ascending."""
        indices = np.flatnonzero(keep)
        used = np.zeros(self.n_nodes, np.bool_)
        used[0] = True
        parents = np.repeat(np.arange(self.n_nodes), np.diff(self._children))  # of node n + 1
        level = self._ends[indices].astype(np.int64)
        while len(level):
            used[level] = True
            level = np.unique(parents[level[level > 0] - 1])
            level = level[~used[level]]
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(used)])
        children = before[self._children[np.append(used, True)].astype(np.int64)]
        ends = before[self._ends[indices].astype(np.int64)]
        return FlatTrie(_small(self.tokens[used]), _small(children), _small(ends)), indices

    def save(self, folder: Path) -> None:
        """Write the arrays into an existing folder."""
        for name, array in zip(self.FILES, (self.tokens, self._children, self._ends), strict=True):
            save_array(folder / name, array)

    @classmethod
    def open(cls, folder: Path) -> FlatTrie:
        """Memory-map the arrays of a folder."""
        try:
            # plain arrays over the mapped files: indexing np.memmap is slow
            tokens, children, ends = (
                np.asarray(open_array(folder / name, *_KINDS)) for name in cls.FILES
            )
            _check_arrays(tokens, children, ends)
        except ValueError as error:
            raise StoreError(f"{folder}: damaged trie ({error}); make it again") from error
        return cls(tokens, children, ends)


def _check_arrays(tokens: Numbers, children: Numbers, ends: Numbers) -> None:
    """Refuse arrays that are no tree."""
    n_nodes = len(tokens)
    check_nodes(children, n_nodes)
    check_range("tokens", tokens, 0, np.iinfo(np.int64).max)
    check_range("ends", ends, 0, n_nodes - 1)
    if not bool((ends[1:] > ends[:-1]).all()):
        raise ValueError("ends: expected nodes that rise")


def _small(values: Numbers) -> Numbers:
    """Convert numbers to the smallest type that holds them."""
    largest = int(values.max(initial=0))
    kind = np.uint16 if largest < 1 << 16 else np.uint32 if largest < 1 << 32 else np.int64
    return values.astype(kind)
