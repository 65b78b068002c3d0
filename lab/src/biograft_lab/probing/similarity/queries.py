"""Similarity queries with hard negatives: similar names of other concepts of the same type.

Names are compared by their normalised keys, so case and hyphens do not matter. A name of a right
concept is never sampled as a negative.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from biograft.graph.triples import read_triples
from biograft.progress import Progress
from biograft_lab.probing.config import SimilarityConfig
from biograft_lab.probing.similarity.names import (
    ConceptNames,
    ConceptNeighbours,
    Ints,
    NamePairs,
    equivalences,
    find_pairs,
    read_names,
)

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase

_MAX_PAIRS = 4_000_000
"""Maximum number of pairs of names compared at once."""


@dataclass(frozen=True, slots=True)
class _Pool:
    """Candidate negatives for positives of some types in one language."""

    keys: Ints
    rows: Ints
    texts: list[str]


@dataclass
class HardNegatives:
    """Samples hard negatives; the sample depends on the query, the store and the seed."""

    base: KnowledgeBase
    names: ConceptNames
    joined: Ints  # (n, 2): equivalent concepts
    config: SimilarityConfig
    _same: dict[int, list[int]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for a, b in self.joined.tolist():
            self._same.setdefault(a, []).append(b)
            self._same.setdefault(b, []).append(a)

    def sample(
        self, queries: Ints, positives: Ints, progress: Progress | None = None
    ) -> list[Ints | None]:
        """Sample rows of names for each query and positive; None if there are too few."""
        sampled: list[Ints | None] = [None] * len(queries)
        n_done = 0
        for pool, selected in self._groups(positives):
            for index, similar in self._find_similar(pool, selected, positives):
                sampled[index] = self._choose(
                    pool, similar, int(queries[index]), int(positives[index])
                )
                n_done += 1
                if progress:
                    progress.advance(1, n_done / len(queries))
        return sampled

    def _groups(self, positives: Ints) -> Iterator[tuple[_Pool, Ints]]:
        """Yield each pool with the indices of the positives that share it."""
        kinds = _type_sets(self.base)
        indices_of: dict[tuple[tuple[int, ...], int], list[int]] = {}
        for index, row in enumerate(positives.tolist()):
            group = (kinds[self.names.concepts[row]], int(self.names.languages[row]))
            indices_of.setdefault(group, []).append(index)
        of_type = self.base.table("types").column("type").to_numpy()
        typed = self.base.table("types").column("concept").to_numpy()
        for (types, language), indices in indices_of.items():
            in_pool = np.zeros(len(self.base), np.bool_)
            if types:
                in_pool[typed[np.isin(of_type, types)]] = True
            else:  # concepts without a type share a pool
                in_pool[:] = True
                in_pool[typed] = False
            in_language = in_pool[self.names.concepts] & (self.names.languages == language)
            rows = np.flatnonzero(in_language)
            keys, first = np.unique(self.names.keys[rows], return_index=True)
            texts = [self.names.key_texts[key] for key in keys.tolist()]
            yield _Pool(keys, rows[first], texts), np.array(indices, np.int64)

    def _find_similar(
        self, pool: _Pool, selected: Ints, positives: Ints
    ) -> Iterator[tuple[int, Ints]]:
        """Yield each positive with the similar names of its pool, as indices in the pool."""
        cdist, scorer = _rapidfuzz()
        keys = self.names.keys[positives[selected]]
        different, of_index = np.unique(keys, return_inverse=True)
        order = np.argsort(of_index, kind="stable")
        ends = np.searchsorted(of_index[order], np.arange(len(different) + 1))
        step = max(1, _MAX_PAIRS // max(len(pool.texts), 1))
        for start in range(0, len(different), step):
            chunk = different[start : start + step].tolist()
            scores = cdist(
                [self.names.key_texts[key] for key in chunk],
                pool.texts,
                scorer=scorer,
                score_cutoff=self.config.jaro_winkler,
                dtype=np.float64,  # in 32 bits a score equal to the bound may exceed it
                workers=1,
            )
            for k, row in enumerate(scores, start):
                similar = np.flatnonzero(row > self.config.jaro_winkler)
                for index in selected[order[ends[k] : ends[k + 1]]].tolist():
                    yield index, similar

    def _choose(self, pool: _Pool, similar: Ints, query: int, positive: int) -> Ints | None:
        """Sample among similar names, without names of the two concepts or equivalent ones."""
        concepts = self.names.concepts[[query, positive]].tolist()
        correct = {
            *concepts,
            *(other for concept in concepts for other in self._same.get(concept, ())),
        }
        keys = self.names.keys_of(np.array(sorted(correct), np.int64))
        wrong = similar[~np.isin(pool.keys[similar], keys)]
        if len(wrong) < self.config.negatives:
            return None
        query_key, positive_key = (
            self.names.key_texts[self.names.keys[row]] for row in (query, positive)
        )
        text = f"{query_key}\n{positive_key}".encode("utf-8", "surrogatepass")
        rng = np.random.default_rng([self.config.seed, zlib.crc32(text)])
        selected: Ints = rng.choice(wrong, self.config.negatives, replace=False)
        return pool.rows[selected]


def _type_sets(base: KnowledgeBase) -> list[tuple[int, ...]]:
    """Return the types of each concept."""
    table = base.table("types")
    types_of: list[list[int]] = [[] for _ in range(len(base))]
    rows = zip(table.column("concept").to_pylist(), table.column("type").to_pylist(), strict=True)
    for concept, kind in rows:
        types_of[concept].append(kind)
    return [tuple(sorted(set(kinds))) for kinds in types_of]


def _rapidfuzz() -> tuple[Callable[..., npt.NDArray[np.float64]], Callable[..., float]]:
    from rapidfuzz.distance import JaroWinkler
    from rapidfuzz.process import cdist

    return cdist, JaroWinkler.similarity


@dataclass(frozen=True, slots=True)
class SimilarityQuery:
    """A name, its synonym and hard negatives; all texts differ."""

    query: str
    positive: str
    negatives: tuple[str, ...]
    concepts: tuple[str, str]
    """Ids of the concepts of query and positive; they may be one."""
    same_neighbours: bool = False
    """Whether the query is in D2."""
    frequencies: tuple[int, int] | None = None
    """Frequencies of query and positive in text, if counted."""


@dataclass(frozen=True, slots=True)
class SimilarityQueries:
    """Queries, and counts of the pairs they were made of."""

    queries: tuple[SimilarityQuery, ...]
    n_pairs: int
    """Number of different pairs before sampling."""
    n_sampled: int
    n_left_out: int
    """Number of queries left out, since too few names are similar to the positive."""


def build_queries(
    base: KnowledgeBase, config: SimilarityConfig, progress: Progress | None = None
) -> SimilarityQueries:
    """Build the queries of a store: each pair of synonyms in both directions."""
    progress = progress or Progress(enabled=False)
    triples = read_triples(base)
    joined = equivalences(triples, config.same_as)
    progress.start("read names")
    names = read_names(base, config.languages)
    progress.start("find pairs")
    types_of = find_pairs(names, joined, config)
    pairs = types_of.where(sample(len(types_of), config.limit, config.seed))
    queries, positives = _both_ways(pairs)
    progress.start("sample hard negatives")
    sampled = HardNegatives(base, names, joined, config).sample(queries, positives, progress)
    progress.finish()
    neighbours = ConceptNeighbours(triples, config.same_as)
    queries_made = [
        _query(base, names, neighbours, (int(query), int(positive), rows))
        for query, positive, rows in zip(queries, positives, sampled, strict=True)
        if rows is not None
    ]
    return SimilarityQueries(
        tuple(queries_made), len(types_of), len(pairs), len(sampled) - len(queries_made)
    )


def sample(n: int, limit: int, seed: int) -> Ints:
    """Sample up to ``limit`` of n, in ascending order; lower limits give subsets; 0: all."""
    if not limit or n <= limit:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).permutation(n)[:limit])


def _both_ways(pairs: NamePairs) -> tuple[Ints, Ints]:
    """Return queries and positives of pairs, in both directions."""
    ways = np.stack([pairs.first, pairs.second], axis=1)  # (pairs, 2)
    return ways.ravel(), ways[:, ::-1].ravel()


def _query(
    base: KnowledgeBase,
    names: ConceptNames,
    neighbours: ConceptNeighbours,
    rows: tuple[int, int, Ints],
) -> SimilarityQuery:
    query, positive, negatives = rows
    concepts = (int(names.concepts[query]), int(names.concepts[positive]))
    return SimilarityQuery(
        names.texts[query],
        names.texts[positive],
        tuple(names.texts[row] for row in negatives.tolist()),
        (base.id_at(concepts[0]), base.id_at(concepts[1])),
        neighbours.are_similar(*concepts),
    )
