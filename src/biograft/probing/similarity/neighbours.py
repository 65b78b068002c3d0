"""Whether two concepts have the same neighbours in the graph: the queries of D2."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from biograft.graph.triples import Triples
from biograft.probing.similarity.config import LEAST_JACCARD, LEAST_SHARED
from biograft.probing.similarity.names import Ints


@dataclass
class Neighbours:
    """The different concepts beside each, over all relations but those that join the same."""

    triples: Triples
    same_as: tuple[str, ...]
    _next: Ints = field(init=False)
    _ends: Ints = field(init=False)
    _known: dict[tuple[int, int], bool] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        numbers = [self.triples.relation_names.index(name) for name in self.same_as]
        told = ~np.isin(self.triples.relations, numbers)
        told &= self.triples.heads != self.triples.tails
        heads, tails = (
            side[told].astype(np.int64) for side in (self.triples.heads, self.triples.tails)
        )
        n = self.triples.n_entities
        both = np.unique(np.concatenate([heads * n + tails, tails * n + heads]))
        self._next = both % max(n, 1)
        self._ends = np.searchsorted(both // max(n, 1), np.arange(n + 1))

    def of(self, concept: int) -> Ints:
        """Give the concepts beside one, ascending."""
        return self._next[self._ends[concept] : self._ends[concept + 1]]

    def alike(self, a: int, b: int) -> bool:
        """Say whether two concepts share enough of their neighbours."""
        pair = (min(a, b), max(a, b))
        if pair not in self._known:
            one, other = self.of(a), self.of(b)
            n_shared = len(one) if a == b else len(np.intersect1d(one, other, assume_unique=True))
            n_all = len(one) if a == b else len(one) + len(other) - n_shared
            self._known[pair] = n_shared >= LEAST_SHARED and n_shared >= LEAST_JACCARD * n_all
        return self._known[pair]
