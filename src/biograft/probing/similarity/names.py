"""Which names are asked about, and among which look-alikes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError, nearest
from biograft.graph.triples import Triples
from biograft.text import normalise

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase

PAIRS = ("all", "names", "relations")
LEAST_JACCARD, LEAST_SHARED = 0.75, 3
"""D2: how alike the neighbours of the two concepts must be."""
RARE = 200
"""D3: up to how often a rare name is found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarityConfig:
    """Which queries are made of a store."""

    same_as: tuple[str, ...] = ()
    """Relations that join concepts that are the same."""
    pairs: str = "all"
    """``names`` of one concept, of two concepts joined by ``relations``, or ``all`` of both."""
    languages: tuple[str, ...] = ()
    """Names in these only; none: in any."""
    across_languages: bool = False
    """Whether a pair may be of two languages."""
    negatives: int = 19
    """How many look-alikes stand beside the right name."""
    jaro_winkler: float = 0.6
    """A look-alike is more alike to the right name than this, in letters."""
    limit: int = 0
    """How many pairs, drawn at random; 0: all."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.pairs not in PAIRS:
            raise ConfigError(f"pairs: expected one of {', '.join(PAIRS)}, found {self.pairs!r}")
        if self.pairs == "relations" and not self.same_as:
            raise ConfigError("pairs: 'relations' needs a relation that joins the same (--same-as)")
        if self.negatives < 1:
            raise ConfigError(f"negatives: expected at least 1, found {self.negatives}")
        if not 0 <= self.jaro_winkler < 1:
            raise ConfigError(
                f"jaro_winkler: expected 0 or more and less than 1, found {self.jaro_winkler}"
            )
        for key in ("limit", "seed"):
            if getattr(self, key) < 0:
                raise ConfigError(f"{key}: expected 0 or more, found {getattr(self, key)}")


Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class StoreNames:
    """A row for each different key of a concept in a language; the first spelling stands for it."""

    texts: list[str]
    concepts: Ints  # (rows,), ascending
    languages: Ints  # (rows,): numbers in the store
    keys: Ints  # (rows,): places in key_texts
    key_texts: list[str]
    _starts: Ints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        n_concepts = int(self.concepts.max(initial=-1)) + 1
        starts = np.searchsorted(self.concepts, np.arange(n_concepts + 1))
        object.__setattr__(self, "_starts", starts.astype(np.int64))

    def bounds(self, concepts: Ints) -> tuple[Ints, Ints]:
        """Say where the rows of concepts begin, and how many each has."""
        last = len(self._starts) - 1
        begin = self._starts[np.minimum(concepts, last)]
        return begin, self._starts[np.minimum(concepts + 1, last)] - begin

    def keys_of(self, concepts: Ints) -> Ints:
        """Give the keys of all names of some concepts."""
        begin, n = self.bounds(concepts)
        rows = [np.arange(b, b + k) for b, k in zip(begin.tolist(), n.tolist(), strict=True)]
        return self.keys[np.concatenate(rows)] if rows else np.zeros(0, np.int64)


def read_names(base: KnowledgeBase, languages: tuple[str, ...] = ()) -> StoreNames:
    """Read the names of a store, all or those in some languages."""
    table = base.table("names")
    tags = table.column("language").to_numpy().astype(np.int64)
    chosen = np.ones(len(tags), np.bool_)
    if languages:
        for tag in languages:
            if tag not in base.languages:
                raise ConfigError(
                    f"languages: {base.folder} has no names in {tag!r}; "
                    f"{nearest(tag, base.languages)}"
                )
        chosen = np.isin(tags, [base.languages.index(tag) for tag in languages])
    rows = np.flatnonzero(chosen)
    texts: list[str] = table.column("text").take(rows).to_pylist()
    places: dict[str, int] = {}
    keys = np.array([places.setdefault(normalise(t), len(places)) for t in texts], np.int64)
    concepts = table.column("concept").to_numpy()[rows].astype(np.int64)
    rank = (concepts * len(base.languages) + tags[rows]) * max(len(places), 1) + keys
    first = np.sort(np.unique(rank, return_index=True)[1])
    return StoreNames(
        [texts[k] for k in first.tolist()],
        concepts[first],
        tags[rows][first],
        keys[first],
        list(places),
    )


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
