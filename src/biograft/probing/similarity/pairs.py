"""Pairs of names that mean the same: of one concept, or of two that a relation calls equal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from biograft.errors import ConfigError, nearest
from biograft.graph.triples import Triples
from biograft.probing.similarity.config import SimilarityConfig
from biograft.probing.similarity.names import Ints, StoreNames


@dataclass(frozen=True, slots=True)
class NamePairs:
    """Rows of names side by side."""

    first: Ints
    second: Ints

    def __len__(self) -> int:
        return len(self.first)

    def where(self, chosen: Ints) -> NamePairs:
        """Keep some, in the order given."""
        return NamePairs(self.first[chosen], self.second[chosen])


def equivalences(triples: Triples, same_as: tuple[str, ...]) -> Ints:
    """Give the pairs of concepts that relations join, each once whatever its direction: (n, 2)."""
    for name in same_as:
        if name not in triples.relation_names:
            known = triples.relation_names
            advice = nearest(name, known) if known else "the store has none"
            raise ConfigError(f"same_as: no relation is called {name!r}; {advice}")
    numbers = [triples.relation_names.index(name) for name in same_as]
    chosen = np.isin(triples.relations, numbers) & (triples.heads != triples.tails)
    ends = np.stack([triples.heads[chosen], triples.tails[chosen]], axis=1).astype(np.int64)
    return np.unique(np.sort(ends, axis=1), axis=0).reshape(-1, 2)


def find_pairs(names: StoreNames, joined: Ints, config: SimilarityConfig) -> NamePairs:
    """Find all pairs of names with different keys, each pair of keys once, in the store's order."""
    found = []
    if config.pairs != "relations":
        found.append(_within_concepts(names))
    if config.pairs != "names":
        found.append(_across_concepts(names, joined))
    first, second = (np.concatenate(side) for side in zip(*found, strict=True))
    good = names.keys[first] != names.keys[second]
    if not config.across_languages:
        good &= names.languages[first] == names.languages[second]
    first, second = first[good], second[good]
    a, b = names.keys[first], names.keys[second]
    both = np.minimum(a, b) * max(len(names.key_texts), 1) + np.maximum(a, b)
    kept = np.sort(np.unique(both, return_index=True)[1])
    return NamePairs(first[kept], second[kept])


def _within_concepts(names: StoreNames) -> tuple[Ints, Ints]:
    """Pair the names of each concept; concepts with as many names are done at once."""
    concepts = np.unique(names.concepts)
    begin, n_names = names.bounds(concepts)
    first, second = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for n in np.unique(n_names[n_names > 1]).tolist():
        a, b = np.triu_indices(n, 1)
        starts = begin[n_names == n][:, None]
        first.append((starts + a).ravel())
        second.append((starts + b).ravel())
    one, other = np.concatenate(first), np.concatenate(second)
    order = np.lexsort((other, one))
    return one[order], other[order]


def _across_concepts(names: StoreNames, joined: Ints) -> tuple[Ints, Ints]:
    """Pair every name of the one concept with every name of the other."""
    begin_a, n_a = names.bounds(joined[:, 0])
    begin_b, n_b = names.bounds(joined[:, 1])
    n_pairs = n_a * n_b
    pair = np.repeat(np.arange(len(joined)), n_pairs)
    within = np.arange(len(pair)) - np.repeat(np.cumsum(n_pairs) - n_pairs, n_pairs)
    return begin_a[pair] + within // n_b[pair], begin_b[pair] + within % n_b[pair]
