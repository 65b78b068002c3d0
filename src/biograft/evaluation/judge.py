"""Judging of ranked candidates against the gold, and rankers for evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from biograft.evaluation.gold import LinkQuery
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Candidate, Evidence, NameHits
from biograft.metrics.linking import RankedAnswer, lenient, strict
from biograft.metrics.metric import Judgements, Values

Answers: TypeAlias = Sequence[Sequence[Candidate]]
"""The ranked candidates of each part of a query; NIL if there are none."""
Search: TypeAlias = Callable[[Sequence[str], int], NameHits]


class Ranker(Protocol):
    """Ranks candidates for queries."""

    def rank(self, queries: Sequence[LinkQuery], k: int) -> Sequence[Answers]:
        """Return at most k candidates, best first, for each part of each query."""


class NameRanker:
    """A name search as a ranker: a candidate for every name, in the order of the search.

    Candidates are *not* reduced to distinct concepts: the lenient rule counts names, and the strict
    rule groups them itself.
    """

    def __init__(self, search: Search, base: KnowledgeBase, name: str = "search") -> None:
        self._search, self._base, self._name = search, base, name
        self._concepts: npt.NDArray[np.uint32] = base.numbers("names", "concept")

    def rank(self, queries: Sequence[LinkQuery], k: int) -> list[list[list[Candidate]]]:
        """Search each distinct part once."""
        if not any(query.parts for query in queries):
            return [[] for _ in queries]
        texts = list(dict.fromkeys(part for query in queries for part in query.parts))
        hits = self._search(texts, k)
        indices = {text: index for index, text in enumerate(texts)}
        return [
            [self._candidates(hits, indices[part], k) for part in query.parts] for query in queries
        ]

    def _candidates(self, hits: NameHits, index: int, k: int) -> list[Candidate]:
        rows, scores = hits.rows[index, :k].tolist(), hits.scores[index, :k].tolist()
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
"""Returns all ids of a concept, spelled as the gold ids."""


@dataclass(frozen=True, slots=True)
class NilRule:
    """Threshold for NIL: on the probability of the first candidate, else on its score."""

    below: float
    by_score: bool = False
    """Compare the score even if there is a probability."""

    def __call__(self, first: Candidate) -> bool:
        """Whether a first candidate is below the threshold."""
        probability = None if self.by_score else first.probability
        return (first.score if probability is None else probability) < self.below


def judge(
    queries: Sequence[LinkQuery],
    answers: Sequence[Answers],
    own_ids: OwnIds,
    *,
    scorer: str = "lenient",
    depth: int = 30,
    nil_rule: NilRule | None = None,
) -> Judgements:
    """Judge every query; a query without answers is wrong.

    The lenient rule counts candidates: names if the ranker returns a candidate for every name, as
    in the papers, and concepts if it returns each concept once.

    A part is answered NIL if it has no candidate, or if ``nil_rule`` applies to its first one; a
    query is answered NIL if all its parts are. A query answered NIL is right only if its gold is
    NIL. A composite is not right if a needed part was answered NIL; its candidates still count
    for recall.
    """
    right, recall = np.zeros((len(queries), depth)), np.zeros((len(queries), depth))
    nil = np.array([query.is_nil for query in queries], dtype=np.bool_)
    answered_nil = np.ones(len(queries), dtype=np.bool_)
    probability = np.zeros(len(queries))
    for index, query in enumerate(queries):
        parts = answers[index] if index < len(answers) else ()
        accepted = _accepted(parts, nil_rule)
        answered_nil[index] = not any(accepted)
        probability[index] = _first_probability(accepted)
        if query.is_nil:
            right[index] = recall[index] = float(answered_nil[index])
            continue
        right[index], recall[index] = _judge_query(query, parts, own_ids, scorer, depth)
        if nil_rule is not None:
            right[index], _ = _judge_query(query, accepted, own_ids, scorer, depth)
    documents = tuple(query.document for query in queries)
    return Judgements(right, recall, nil, answered_nil, probability, documents)


def _judge_query(
    query: LinkQuery, parts: Answers, own_ids: OwnIds, scorer: str, depth: int
) -> tuple[Values, Values]:
    if scorer == "lenient":
        sets = [[own_ids(c.concept) for c in ranked[:depth]] for ranked in parts]
        return lenient(sets, query.gold, depth)
    named = [[RankedAnswer(c.concept, own_ids(c.concept), c.score) for c in r] for r in parts]
    return strict(named, query.needed, depth)


def _accepted(parts: Answers, nil_rule: NilRule | None) -> Answers:
    """Remove the candidates of the parts that are answered NIL."""
    if nil_rule is None:
        return parts
    return [() if ranked and nil_rule(ranked[0]) else ranked for ranked in parts]


def _first_probability(parts: Answers) -> float:
    """Return the joint probability of the first answers; nan if they have none, 0 if missing."""
    firsts = [ranked[0] for ranked in parts if ranked]
    if not firsts or len(firsts) < len(parts):
        return 0.0
    accepted = [c.probability for c in firsts if c.probability is not None]
    return float(np.prod(accepted)) if len(accepted) == len(firsts) else float("nan")
