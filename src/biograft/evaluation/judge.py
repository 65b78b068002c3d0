"""Who answers the queries of an evaluation: a ranker, or names that a search finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from biograft.evaluation.gold import LinkQuery
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Candidate, Evidence, NameHits
from biograft.metrics.linking import Answer, lenient, strict
from biograft.metrics.metric import Judgements, Values

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


OwnIds = Callable[[str], frozenset[str]]
"""Gives all ids that a concept goes by, spelled as the gold ids are."""


@dataclass(frozen=True, slots=True)
class NilRule:
    """When a first candidate is taken for NIL: below this probability, without one the score."""

    below: float
    by_score: bool = False
    """Compare the score though there is a probability."""

    def __call__(self, first: Candidate) -> bool:
        """Whether a first candidate is so unlikely that the answer is NIL."""
        said = None if self.by_score else first.probability
        return (first.score if said is None else said) < self.below


def judge(
    queries: Sequence[LinkQuery],
    answers: Sequence[Answers],
    own_ids: OwnIds,
    *,
    scorer: str = "lenient",
    depth: int = 30,
    nil_rule: NilRule | None = None,
) -> Judgements:
    """Judge every query; one whose answers are missing is wrong.

    The lenient rule counts candidates as they come: names where the ranker gives a candidate for
    every name, as the papers do, and concepts where it gives each concept once.

    A part is answered NIL if it has no candidate, or if ``nil_rule`` takes its first one for NIL;
    a query is if all its parts are. A query answered NIL is right exactly if its gold is NIL, and
    a composite is not right if a part that counts was answered NIL; what was found among the
    candidates still counts for recall.
    """
    right, found = np.zeros((len(queries), depth)), np.zeros((len(queries), depth))
    nil = np.array([query.is_nil for query in queries], dtype=np.bool_)
    answered_nil = np.ones(len(queries), dtype=np.bool_)
    probability = np.zeros(len(queries))
    for place, query in enumerate(queries):
        parts = answers[place] if place < len(answers) else ()
        given = _given(parts, nil_rule)
        answered_nil[place] = not any(given)
        probability[place] = _first_probability(given)
        if query.is_nil:
            right[place] = found[place] = float(answered_nil[place])
            continue
        right[place], found[place] = _judge_one(query, parts, own_ids, scorer, depth)
        if nil_rule is not None:
            right[place], _ = _judge_one(query, given, own_ids, scorer, depth)
    documents = tuple(query.document for query in queries)
    return Judgements(right, found, nil, answered_nil, probability, documents)


def _judge_one(
    query: LinkQuery, parts: Answers, own_ids: OwnIds, scorer: str, depth: int
) -> tuple[Values, Values]:
    if scorer == "lenient":
        sets = [[own_ids(c.concept) for c in ranked[:depth]] for ranked in parts]
        return lenient(sets, query.gold, depth)
    named = [[Answer(c.concept, own_ids(c.concept), c.score) for c in r] for r in parts]
    return strict(named, query.needed, depth)


def _given(parts: Answers, nil_rule: NilRule | None) -> Answers:
    """Take the candidates from the parts that were answered NIL."""
    if nil_rule is None:
        return parts
    return [() if ranked and nil_rule(ranked[0]) else ranked for ranked in parts]


def _first_probability(parts: Answers) -> float:
    """Give the probability of the first answers together; nan if they carry none, 0 if none is."""
    firsts = [ranked[0] for ranked in parts if ranked]
    if not firsts or len(firsts) < len(parts):
        return 0.0
    given = [c.probability for c in firsts if c.probability is not None]
    return float(np.prod(given)) if len(given) == len(firsts) else float("nan")
