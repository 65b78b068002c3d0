"""Queries: a name, another name of the same thing, and names that only look like that one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from biograft.graph.triples import read_triples
from biograft.probing.similarity.config import SimilarityConfig
from biograft.probing.similarity.lookalikes import Lookalikes
from biograft.probing.similarity.names import Ints, StoreNames, read_names
from biograft.probing.similarity.neighbours import Neighbours
from biograft.probing.similarity.pairs import NamePairs, equivalences, find_pairs
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase


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
