"""Who answers the queries of an evaluation: a ranker, or names that a search finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from biograft.evaluation.queries import LinkQuery
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Candidate, Evidence, NameHits

Answers: TypeAlias = Sequence[Sequence[Candidate]]
"""The ranked candidates of each part of a query; no part, or none of it: NIL."""
Search: TypeAlias = Callable[[Sequence[str], int], NameHits]


class Ranker(Protocol):
    """Whatever gives ranked candidates for queries."""

    def rank(self, queries: Sequence[LinkQuery], k: int) -> Sequence[Answers]:
        """Give at most k candidates, best first, for each part of each query."""


class NameRanker:
    """A search for names as a ranker: a candidate for every name, in the order found.

    Candidates are *not* brought to distinct concepts: the lenient rule counts names, and the
    strict rule makes concepts of them itself.
    """

    def __init__(self, search: Search, base: KnowledgeBase, name: str = "search") -> None:
        self._search, self._base, self._name = search, base, name
        self._concepts: npt.NDArray[np.uint32] = base.table("names").column("concept").to_numpy()

    def rank(self, queries: Sequence[LinkQuery], k: int) -> list[list[list[Candidate]]]:
        """Search each distinct part once."""
        if not any(query.parts for query in queries):
            return [[] for _ in queries]
        texts = list(dict.fromkeys(part for query in queries for part in query.parts))
        hits = self._search(texts, k)
        places = {text: place for place, text in enumerate(texts)}
        return [
            [self._candidates(hits, places[part], k) for part in query.parts] for query in queries
        ]

    def _candidates(self, hits: NameHits, place: int, k: int) -> list[Candidate]:
        rows, scores = hits.rows[place, :k].tolist(), hits.scores[place, :k].tolist()
        return [
            self._candidate(row, score, rank)
            for rank, (row, score) in enumerate(zip(rows, scores, strict=True), 1)
            if row >= 0
        ]

    def _candidate(self, row: int, score: float, rank: int) -> Candidate:
        name, concept = self._base.name(row).text, int(self._concepts[row])
        return Candidate(
            self._base.id_at(concept),
            self._base.name_at(concept),
            name,
            score,
            evidence=(Evidence(self._name, name, rank, score),),
        )
