"""Analysis of linking results: sub-populations, similarity buckets and kinds of error.

The populations are those of GenBioEL's table. Mentions are compared case-insensitively; words are
separated by whitespace. Populations that need the training gold are left out without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np

from biograft.evaluation.gold import LinkQuery
from biograft.evaluation.ids import StoreIds, resolve_gold
from biograft.evaluation.linking import LinkingResult, QueryRow
from biograft.ids import canonical_id
from biograft.kb import KnowledgeBase
from biograft.metrics.metric import Flags, Judgements, Metric
from biograft.metrics.significance import Interval, bootstrap_interval
from biograft.text import normalise

TOP_CONCEPTS = 100
BUCKETS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Lower bounds of the buckets of similarity; the last holds mentions equal to a gold name."""


@dataclass(frozen=True, slots=True)
class Population:
    """The metrics of a subset of the queries."""

    name: str
    n: int
    acc1: float
    acc5: float
    interval: Interval
    """Of acc@1, resampling documents."""

    def to_json(self) -> dict[str, Any]:
        """Return the metrics as plain values, in percent."""
        return {
            "name": self.name,
            "n": self.n,
            "acc@1": round(100 * self.acc1, 4),
            "acc@5": round(100 * self.acc5, 4),
            "interval": [round(100 * self.interval.low, 4), round(100 * self.interval.high, 4)],
        }


def sub_populations(
    result: LinkingResult, base: KnowledgeBase, training: Sequence[LinkQuery] | None = None
) -> list[Population]:
    """Score the populations of GenBioEL's table; empty ones have size 0."""
    queries = result.resolved.queries
    single = np.array([len(query.mention.split()) == 1 for query in queries])
    flags: dict[str, Flags] = {
        "overall": np.ones(len(queries), dtype=np.bool_),
        "single word": single,
        "multi word": ~single,
        "not a direct match": np.array([not is_direct_match(q, base) for q in queries]),
    }
    if training is not None:
        flags |= _against_training(queries, training, base)
    return [_score(name, result.judgements, mask) for name, mask in flags.items()]


def _against_training(
    queries: Sequence[LinkQuery], training: Sequence[LinkQuery], base: KnowledgeBase
) -> dict[str, Flags]:
    training_queries = resolve_gold(training, StoreIds(base)).queries
    mentions = {query.mention.lower() for query in training_queries}
    concepts = Counter(concept for query in training_queries for concept in query.gold)
    # ties in frequency are broken by id
    ranked = sorted(concepts, key=lambda concept: (-concepts[concept], concept))
    top = frozenset(ranked[:TOP_CONCEPTS])
    return {
        "unseen mention": np.array([q.mention.lower() not in mentions for q in queries]),
        "unseen concept": np.array([q.gold.isdisjoint(concepts) for q in queries]),
        f"top {TOP_CONCEPTS} concepts": np.array([not q.gold.isdisjoint(top) for q in queries]),
    }


def is_direct_match(query: LinkQuery, base: KnowledgeBase) -> bool:
    """Whether each part of the mention is, up to normalisation, a name of a gold concept."""
    ids = base.ids_of(query.gold)
    return all(any(match.concept in ids for match in base.find(subset)) for subset in query.parts)


def similarity_buckets(result: LinkingResult, base: KnowledgeBase) -> list[Population]:
    """Score queries by the similarity of the mention to the most similar gold name.

    Similarity is the cosine of character 3-gram counts of the normalised texts.
    """
    similarities = np.array([name_similarity(query, base) for query in result.resolved.queries])
    populations = []
    for low, high in pairwise([*BUCKETS, np.inf]):
        label = f"{low:.1f} to {high:.1f}" if high < np.inf else "1.0 (a gold name)"
        mask = (similarities >= low) & (similarities < high)
        populations.append(_score(label, result.judgements, mask))
    return populations


def name_similarity(query: LinkQuery, base: KnowledgeBase) -> float:
    """Return the cosine of the mention and the most similar gold name; 0 if there is none."""
    grams = _grams(query.mention)
    names = {
        normalise(name.text)
        for row in base.rows_of(query.gold)
        for name in base.concept_at(row).names
    }
    return max((_cosine(grams, _grams(name)) for name in names), default=0.0)


def _grams(text: str) -> Counter[str]:
    padded = f" {normalise(text)} "
    return Counter(padded[k : k + 3] for k in range(max(len(padded) - 2, 1)))


def _cosine(a: Counter[str], b: Counter[str]) -> float:
    if a == b:
        return 1.0
    product = sum(n * b[gram] for gram, n in a.items())
    # rounding must not give different texts the cosine of equal ones
    return min(product / (_length(a) * _length(b)), 1.0 - 1e-9)


def _length(grams: Counter[str]) -> float:
    return sqrt(sum(n * n for n in grams.values()))


def _score(name: str, judgements: Judgements, mask: Flags) -> Population:
    subset = judgements.take(mask)
    first = Metric("acc", 1)
    values = first.values(subset)
    interval = Interval(0.0, 0.0)
    if values is not None and len(values):
        interval = bootstrap_interval(values, subset.documents)
    fifth = Metric("acc", min(5, judgements.depth))
    return Population(name, len(subset), first(subset), fifth(subset), interval)


class ErrorKind(StrEnum):
    """Kinds of error, in order of precedence."""

    NO_ANSWER = "no answer"
    NIL_GIVEN = "NIL given for a concept"
    NIL_MISSED = "concept given for NIL"
    NOT_IN_STORE = "gold concept not in the store"
    TIED = "tied with the gold concept"
    PART_MISSED = "a part of a composite missed"
    SAME_NAME = "another concept of that name"
    BROADER = "broader concept"
    NARROWER = "narrower concept"
    RANKED_LOWER = "gold concept ranked lower"
    NOT_FOUND = "gold concept not found"


@dataclass(frozen=True, slots=True)
class Mistake:
    """A wrong answer beside the right one."""

    mention: str
    document: str
    gold: str
    gold_name: str
    predicted: str
    predicted_name: str
    matched: str
    """The matched name of the predicted concept."""
    rank: int | None
    kind: ErrorKind


def find_mistakes(result: LinkingResult, base: KnowledgeBase) -> list[Mistake]:
    """Return all queries whose first answer is not certainly right, in order."""
    unknown = result.resolved.unknown
    return [_mistake(row, base, unknown) for row in result.rows if row.right < 1]


def count_kinds(mistakes: Sequence[Mistake]) -> dict[ErrorKind, int]:
    """Count mistakes by kind, the most frequent first."""
    counts = Counter(mistake.kind for mistake in mistakes)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _mistake(row: QueryRow, base: KnowledgeBase, unknown: frozenset[str]) -> Mistake:
    gold = sorted(row.query.gold)
    firsts = [ranked[0] for ranked in row.answers if ranked]
    return Mistake(
        row.query.mention,
        row.query.document,
        " ".join(gold) or "NIL",
        "; ".join(dict.fromkeys(_name(i, base) for i in gold)),
        " ".join(dict.fromkeys(c.concept for c in firsts)) or "NIL",
        "; ".join(dict.fromkeys(c.concept_name for c in firsts)),
        "; ".join(dict.fromkeys(c.name for c in firsts)),
        row.rank,
        _kind(row, base, unknown),
    )


def _name(identifier: str, base: KnowledgeBase) -> str:
    row = base.find_row(identifier)
    return base.name_at(row) if row is not None else "(not in the store)"


def _kind(row: QueryRow, base: KnowledgeBase, unknown: frozenset[str]) -> ErrorKind:
    if row.query.is_nil:
        return ErrorKind.NIL_MISSED
    if row.answered_nil:
        return ErrorKind.NIL_GIVEN if any(row.answers) else ErrorKind.NO_ANSWER
    if row.query.gold <= unknown:
        return ErrorKind.NOT_IN_STORE
    if row.right > 0:
        return ErrorKind.TIED
    if _answers_some(row, base):
        return ErrorKind.PART_MISSED
    related = _related(row, base)
    if related is not None:
        return related
    return ErrorKind.NOT_FOUND if row.rank is None else ErrorKind.RANKED_LOWER


def _answers_some(row: QueryRow, base: KnowledgeBase) -> bool:
    gold = base.ids_of(row.query.gold)
    return any(ranked and ranked[0].concept in gold for ranked in row.answers)


def _related(row: QueryRow, base: KnowledgeBase) -> ErrorKind | None:
    """Return how the predicted concept is related to a gold concept, if it is."""
    gold = base.ids_of(row.query.gold)
    for ranked in row.answers:
        if not ranked or canonical_id(ranked[0].concept) not in base:
            continue
        if any(match.concept in gold for match in base.find(ranked[0].name)):
            return ErrorKind.SAME_NAME
        if any(ranked[0].concept in base.parents(concept) for concept in gold):
            return ErrorKind.BROADER
        if any(ranked[0].concept in base.children(concept) for concept in gold):
            return ErrorKind.NARROWER
    return None
