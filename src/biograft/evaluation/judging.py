"""Judge the answers to queries by a scorer: from candidates to right and wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from biograft.evaluation.queries import LinkQuery
from biograft.evaluation.ranking import Answers
from biograft.linking.candidates import Candidate
from biograft.metrics.judgements import Judgements, Values
from biograft.metrics.linking import Answer, lenient, strict

OwnIds = Callable[[str], frozenset[str]]
"""Gives all ids that a concept goes by, spelled as the gold ids are."""


def judge(
    queries: Sequence[LinkQuery],
    answers: Sequence[Answers],
    own_ids: OwnIds,
    *,
    scorer: str = "lenient",
    depth: int = 30,
    nil_below: float | None = None,
) -> Judgements:
    """Judge every query; one whose answers are missing is wrong.

    The lenient rule counts candidates as they come: names where the ranker gives a candidate for
    every name, as the papers do, and concepts where it gives each concept once.

    An answer is NIL if there is no candidate, or if ``nil_below`` is given and the first
    candidate of every part is below it (its probability, or its score where it has none).
    A query answered NIL is right exactly if its gold is NIL; what was found among its candidates
    still counts for recall.
    """
    right, found = np.zeros((len(queries), depth)), np.zeros((len(queries), depth))
    nil = np.array([query.is_nil for query in queries], dtype=np.bool_)
    answered_nil = np.ones(len(queries), dtype=np.bool_)
    probability = np.zeros(len(queries))
    for place, query in enumerate(queries):
        parts = answers[place] if place < len(answers) else ()
        answered_nil[place] = is_nil(parts, nil_below)
        probability[place] = _first_probability(parts)
        if query.is_nil:
            right[place] = found[place] = float(answered_nil[place])
            continue
        right[place], found[place] = _judge_one(query, parts, own_ids, scorer, depth)
        if answered_nil[place]:
            right[place] = 0.0
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


def is_nil(parts: Answers, nil_below: float | None) -> bool:
    """Whether the answer to a query is that no concept fits."""
    firsts = [ranked[0] for ranked in parts if ranked]
    if nil_below is None:
        return not firsts
    return all(_confidence(first) < nil_below for first in firsts)


def _confidence(candidate: Candidate) -> float:
    return candidate.score if candidate.probability is None else candidate.probability


def _first_probability(parts: Answers) -> float:
    """Give the probability of the first answers together; nan if they carry none, 0 if none is."""
    firsts = [ranked[0] for ranked in parts if ranked]
    if not firsts or len(firsts) < len(parts):
        return 0.0
    given = [c.probability for c in firsts if c.probability is not None]
    return float(np.prod(given)) if len(given) == len(firsts) else float("nan")
