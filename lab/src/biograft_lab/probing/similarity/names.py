"""Names of a store for the similarity probe: configuration, synonym pairs and neighbours."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError, nearest
from biograft.graph.triples import Triples
from biograft.kb.names import normalise
from biograft_lab.probing.config import SimilarityConfig

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase

MIN_JACCARD, MIN_SHARED = 0.75, 3
"""D2: minimum overlap of the neighbours of the two concepts."""
RARE = 200
"""D3: maximum frequency of a rare name."""


Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ConceptNames:
    """Names by concept, language and normalised key, with the first spelling of each."""

    texts: list[str]
    concepts: Ints  # (rows,), ascending
    languages: Ints  # (rows,): indices in the store
    keys: Ints  # (rows,): indices in key_texts
    key_texts: list[str]
    _starts: Ints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        n_concepts = int(self.concepts.max(initial=-1)) + 1
        starts = np.searchsorted(self.concepts, np.arange(n_concepts + 1))
        object.__setattr__(self, "_starts", starts.astype(np.int64))

    def bounds(self, concepts: Ints) -> tuple[Ints, Ints]:
        """Return the first row of each concept and its number of rows."""
        last = len(self._starts) - 1
        begin = self._starts[np.minimum(concepts, last)]
        return begin, self._starts[np.minimum(concepts + 1, last)] - begin

    def keys_of(self, concepts: Ints) -> Ints:
        """Return the keys of all names of some concepts."""
        begin, n = self.bounds(concepts)
        rows = [np.arange(b, b + k) for b, k in zip(begin.tolist(), n.tolist(), strict=True)]
        return self.keys[np.concatenate(rows)] if rows else np.zeros(0, np.int64)


def read_names(base: KnowledgeBase, languages: tuple[str, ...] = ()) -> ConceptNames:
    """Read the names of a store, all or those in some languages."""
    table = base.table("names")
    tags = table.column("language").to_numpy().astype(np.int64)
    mask = np.ones(len(tags), np.bool_)
    if languages:
        for tag in languages:
            if tag not in base.languages:
                raise ConfigError(
                    f"languages: {base.folder} has no names in {tag!r}; "
                    f"{nearest(tag, base.languages)}"
                )
        mask = np.isin(tags, [base.languages.index(tag) for tag in languages])
    rows = np.flatnonzero(mask)
    texts: list[str] = table.column("text").take(rows).to_pylist()
    codes: dict[str, int] = {}
    keys = np.array([codes.setdefault(normalise(t), len(codes)) for t in texts], np.int64)
    concepts = table.column("concept").to_numpy()[rows].astype(np.int64)
    rank = (concepts * len(base.languages) + tags[rows]) * max(len(codes), 1) + keys
    first = np.sort(np.unique(rank, return_index=True)[1])
    return ConceptNames(
        [texts[k] for k in first.tolist()],
        concepts[first],
        tags[rows][first],
        keys[first],
        list(codes),
    )


@dataclass
class ConceptNeighbours:
    """The neighbours of each concept, over all relations but those of equivalence."""

    triples: Triples
    same_as: tuple[str, ...]
    _next: Ints = field(init=False)
    _ends: Ints = field(init=False)
    _known: dict[tuple[int, int], bool] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        relation_codes = [self.triples.relation_names.index(name) for name in self.same_as]
        selected = ~np.isin(self.triples.relations, relation_codes)
        selected &= self.triples.heads != self.triples.tails
        heads, tails = (
            side[selected].astype(np.int64) for side in (self.triples.heads, self.triples.tails)
        )
        n = self.triples.n_entities
        both = np.unique(np.concatenate([heads * n + tails, tails * n + heads]))
        self._next = both % max(n, 1)
        self._ends = np.searchsorted(both // max(n, 1), np.arange(n + 1))

    def of(self, concept: int) -> Ints:
        """Return the neighbours of a concept, ascending."""
        return self._next[self._ends[concept] : self._ends[concept + 1]]

    def are_similar(self, a: int, b: int) -> bool:
        """Whether two concepts share enough of their neighbours."""
        pair = (min(a, b), max(a, b))
        if pair not in self._known:
            left, right = self.of(a), self.of(b)
            n_shared = len(left) if a == b else len(np.intersect1d(left, right, assume_unique=True))
            n_all = len(left) if a == b else len(left) + len(right) - n_shared
            self._known[pair] = n_shared >= MIN_SHARED and n_shared >= MIN_JACCARD * n_all
        return self._known[pair]


@dataclass(frozen=True, slots=True)
class NamePairs:
    """Rows of names side by side."""

    first: Ints
    second: Ints

    def __len__(self) -> int:
        return len(self.first)

    def where(self, mask: Ints) -> NamePairs:
        """Keep some, in the order given."""
        return NamePairs(self.first[mask], self.second[mask])


def equivalences(triples: Triples, same_as: tuple[str, ...]) -> Ints:
    """Return the pairs of equivalent concepts, each once in any direction: (n, 2)."""
    for name in same_as:
        if name not in triples.relation_names:
            known = triples.relation_names
            hint = nearest(name, known) if known else "the store has none"
            raise ConfigError(f"same_as: no relation is called {name!r}; {hint}")
    relation_codes = [triples.relation_names.index(name) for name in same_as]
    mask = np.isin(triples.relations, relation_codes) & (triples.heads != triples.tails)
    ends = np.stack([triples.heads[mask], triples.tails[mask]], axis=1).astype(np.int64)
    return np.unique(np.sort(ends, axis=1), axis=0).reshape(-1, 2)


def find_pairs(names: ConceptNames, equivalent: Ints, config: SimilarityConfig) -> NamePairs:
    """Return all pairs of names with different keys, each pair of keys once, in order."""
    pairs = []
    if config.pairs != "relations":
        pairs.append(_within_concepts(names))
    if config.pairs != "names":
        pairs.append(_across_concepts(names, equivalent))
    first, second = (np.concatenate(side) for side in zip(*pairs, strict=True))
    valid = names.keys[first] != names.keys[second]
    if not config.across_languages:
        valid &= names.languages[first] == names.languages[second]
    first, second = first[valid], second[valid]
    a, b = names.keys[first], names.keys[second]
    both = np.minimum(a, b) * max(len(names.key_texts), 1) + np.maximum(a, b)
    first_rows = np.sort(np.unique(both, return_index=True)[1])
    return NamePairs(first[first_rows], second[first_rows])


def _within_concepts(names: ConceptNames) -> tuple[Ints, Ints]:
    """Pair the names of each concept; concepts with equally many names are handled together."""
    concepts = np.unique(names.concepts)
    begin, n_names = names.bounds(concepts)
    first, second = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for n in np.unique(n_names[n_names > 1]).tolist():
        a, b = np.triu_indices(n, 1)
        starts = begin[n_names == n][:, None]
        first.append((starts + a).ravel())
        second.append((starts + b).ravel())
    left, right = np.concatenate(first), np.concatenate(second)
    order = np.lexsort((right, left))
    return left[order], right[order]


def _across_concepts(names: ConceptNames, equivalent: Ints) -> tuple[Ints, Ints]:
    """Pair every name of one concept with every name of the other."""
    begin_a, n_a = names.bounds(equivalent[:, 0])
    begin_b, n_b = names.bounds(equivalent[:, 1])
    n_pairs = n_a * n_b
    pair = np.repeat(np.arange(len(equivalent)), n_pairs)
    within = np.arange(len(pair)) - np.repeat(np.cumsum(n_pairs) - n_pairs, n_pairs)
    return begin_a[pair] + within // n_b[pair], begin_b[pair] + within % n_b[pair]
