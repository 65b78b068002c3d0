"""Names that look like a right answer and are none: of other concepts of its type.

Names are compared by their normalised keys, so that neither case nor hyphens tell two apart, and
a text that is a name of a right concept, too, is never drawn as a wrong one.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from biograft.errors import MissingExtraError
from biograft.graph.triples import read_triples
from biograft.probing.similarity.names import (
    Ints,
    NamePairs,
    Neighbours,
    SimilarityConfig,
    StoreNames,
    equivalences,
    find_pairs,
    read_names,
)
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase

_CELLS = 4_000_000
"""Pairs of names compared at once."""


@dataclass(frozen=True, slots=True)
class _Pool:
    """Names that may be drawn for positives of some types in one language."""

    keys: Ints
    rows: Ints
    texts: list[str]


@dataclass
class Lookalikes:
    """Draws look-alikes; what is drawn for a query depends on it, the store and the seed."""

    base: KnowledgeBase
    names: StoreNames
    joined: Ints  # (n, 2): concepts that are the same
    config: SimilarityConfig
    _same: dict[int, list[int]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for a, b in self.joined.tolist():
            self._same.setdefault(a, []).append(b)
            self._same.setdefault(b, []).append(a)

    def draw(
        self, queries: Ints, positives: Ints, progress: Progress | None = None
    ) -> list[Ints | None]:
        """Give rows of names for each query and positive; None where there are too few."""
        drawn: list[Ints | None] = [None] * len(queries)
        n_done = 0
        for pool, chosen in self._groups(positives):
            for place, alike in self._alike(pool, chosen, positives):
                drawn[place] = self._choose(pool, alike, int(queries[place]), int(positives[place]))
                n_done += 1
                if progress:
                    progress.advance(1, n_done / len(queries))
        return drawn

    def _groups(self, positives: Ints) -> Iterator[tuple[_Pool, Ints]]:
        """Give the places of positives that share a pool, with it."""
        kinds = _type_sets(self.base)
        numbers: dict[tuple[tuple[int, ...], int], list[int]] = {}
        for place, row in enumerate(positives.tolist()):
            group = (kinds[self.names.concepts[row]], int(self.names.languages[row]))
            numbers.setdefault(group, []).append(place)
        of_type = self.base.table("types").column("type").to_numpy()
        typed = self.base.table("types").column("concept").to_numpy()
        for (types, language), places in numbers.items():
            shares = np.zeros(len(self.base), np.bool_)
            if types:
                shares[typed[np.isin(of_type, types)]] = True
            else:  # concepts of no type are as of one
                shares[:] = True
                shares[typed] = False
            fitting = shares[self.names.concepts] & (self.names.languages == language)
            rows = np.flatnonzero(fitting)
            keys, first = np.unique(self.names.keys[rows], return_index=True)
            texts = [self.names.key_texts[key] for key in keys.tolist()]
            yield _Pool(keys, rows[first], texts), np.array(places, np.int64)

    def _alike(self, pool: _Pool, chosen: Ints, positives: Ints) -> Iterator[tuple[int, Ints]]:
        """Give each place with what of the pool is alike to its positive, as places in the pool."""
        cdist, scorer = _rapidfuzz()
        keys = self.names.keys[positives[chosen]]
        different, of_place = np.unique(keys, return_inverse=True)
        order = np.argsort(of_place, kind="stable")
        ends = np.searchsorted(of_place[order], np.arange(len(different) + 1))
        step = max(1, _CELLS // max(len(pool.texts), 1))
        for start in range(0, len(different), step):
            part = different[start : start + step].tolist()
            scores = cdist(
                [self.names.key_texts[key] for key in part],
                pool.texts,
                scorer=scorer,
                score_cutoff=self.config.jaro_winkler,
                dtype=np.float64,  # in 32 bits what is equal to the bound may lie above it
                workers=1,
            )
            for k, row in enumerate(scores, start):
                alike = np.flatnonzero(row > self.config.jaro_winkler)
                for place in chosen[order[ends[k] : ends[k + 1]]].tolist():
                    yield place, alike

    def _choose(self, pool: _Pool, alike: Ints, query: int, positive: int) -> Ints | None:
        """Draw among what is alike and no name of the two concepts or of one that is the same."""
        own = self.names.concepts[[query, positive]].tolist()
        right = {*own, *(other for concept in own for other in self._same.get(concept, ()))}
        keys = self.names.keys_of(np.array(sorted(right), np.int64))
        wrong = alike[~np.isin(pool.keys[alike], keys)]
        if len(wrong) < self.config.negatives:
            return None
        asked, expected = (self.names.key_texts[self.names.keys[row]] for row in (query, positive))
        text = f"{asked}\n{expected}".encode("utf-8", "surrogatepass")
        rng = np.random.default_rng([self.config.seed, zlib.crc32(text)])
        chosen: Ints = rng.choice(wrong, self.config.negatives, replace=False)
        return pool.rows[chosen]


def _type_sets(base: KnowledgeBase) -> list[tuple[int, ...]]:
    """Give the types of each concept."""
    table = base.table("types")
    found: list[list[int]] = [[] for _ in range(len(base))]
    rows = zip(table.column("concept").to_pylist(), table.column("type").to_pylist(), strict=True)
    for concept, kind in rows:
        found[concept].append(kind)
    return [tuple(sorted(set(kinds))) for kinds in found]


def _rapidfuzz() -> tuple[Callable[..., npt.NDArray[np.float64]], Callable[..., float]]:
    try:
        from rapidfuzz.distance import JaroWinkler
        from rapidfuzz.process import cdist
    except ImportError as error:
        raise MissingExtraError("probe", "comparing names by their letters") from error
    return cdist, JaroWinkler.similarity


@dataclass(frozen=True, slots=True)
class SimilarityQuery:
    """A name, its equivalent, and look-alikes of that; every text differs from every other."""

    query: str
    positive: str
    negatives: tuple[str, ...]
    concepts: tuple[str, str]
    """Ids of the concepts of query and positive; they may be one."""
    same_neighbours: bool = False
    """Whether the query belongs to D2."""
    frequencies: tuple[int, int] | None = None
    """How often query and positive were found in text, if that was counted."""


@dataclass(frozen=True, slots=True)
class SimilarityQueries:
    """Queries, and what became of the pairs they were made of."""

    queries: tuple[SimilarityQuery, ...]
    n_pairs: int
    """Different pairs there were before any was drawn."""
    n_drawn: int
    n_left_out: int
    """Queries left out, since too few names look like the positive."""


def build_queries(
    base: KnowledgeBase, config: SimilarityConfig, progress: Progress | None = None
) -> SimilarityQueries:
    """Make the queries of a store: each pair of equivalent names both ways."""
    progress = progress or Progress(enabled=False)
    triples = read_triples(base)
    joined = equivalences(triples, config.same_as)
    progress.start("read names")
    names = read_names(base, config.languages)
    progress.start("find pairs")
    found = find_pairs(names, joined, config)
    pairs = found.where(draw(len(found), config.limit, config.seed))
    queries, positives = _both_ways(pairs)
    progress.start("draw look-alikes")
    drawn = Lookalikes(base, names, joined, config).draw(queries, positives, progress)
    progress.finish()
    neighbours = Neighbours(triples, config.same_as)
    kept = [
        _query(base, names, neighbours, (int(query), int(positive), rows))
        for query, positive, rows in zip(queries, positives, drawn, strict=True)
        if rows is not None
    ]
    return SimilarityQueries(tuple(kept), len(found), len(pairs), len(drawn) - len(kept))


def draw(n: int, limit: int, seed: int) -> Ints:
    """Draw so many of n, in ascending order, of which a lower limit draws a part; 0: all."""
    if not limit or n <= limit:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).permutation(n)[:limit])


def _both_ways(pairs: NamePairs) -> tuple[Ints, Ints]:
    """Ask for the second name of a pair by the first, then the other way round."""
    ways = np.stack([pairs.first, pairs.second], axis=1)  # (pairs, 2)
    return ways.ravel(), ways[:, ::-1].ravel()


def _query(
    base: KnowledgeBase,
    names: StoreNames,
    neighbours: Neighbours,
    rows: tuple[int, int, Ints],
) -> SimilarityQuery:
    query, positive, negatives = rows
    concepts = (int(names.concepts[query]), int(names.concepts[positive]))
    return SimilarityQuery(
        names.texts[query],
        names.texts[positive],
        tuple(names.texts[row] for row in negatives.tolist()),
        (base.id_at(concepts[0]), base.id_at(concepts[1])),
        neighbours.alike(*concepts),
    )
