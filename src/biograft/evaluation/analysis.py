"""Analysis of linking results: sub-populations, similarity buckets, kinds and causes of error.

The populations are those of GenBioEL's table. Mentions are compared case-insensitively; words are
separated by whitespace. Populations that need the training gold are left out without it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import hypot
from typing import Any

import numpy as np

from biograft.arrays import Flags
from biograft.evaluation.gold import LinkQuery
from biograft.evaluation.linking import LinkingResult, QueryRow, StoreIds, resolve_gold
from biograft.kb import KnowledgeBase
from biograft.kb.names import normalise
from biograft.kb.vocabularies import canonical_id
from biograft.metrics.linking import Judgements, Metric
from biograft.metrics.precision_recall import percent
from biograft.metrics.significance import Interval, bootstrap_interval
from biograft.text.abbreviations import abbreviates

TOP_CONCEPTS = 100
BUCKETS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Lower bounds of the buckets of similarity; the last holds mentions equal to a gold name."""
REACHABLE = "concept in the store"


@dataclass(frozen=True, slots=True)
class Population:
    """The metrics of a subset of the queries."""

    name: str
    """Name of the subset."""
    n: int
    """Number of its queries."""
    acc1: float
    """Share of queries whose first answer is right, from 0 to 1."""
    acc5: float
    """Share of queries with a right answer among the first five, from 0 to 1."""
    interval: Interval
    """Interval of acc@1, resampling documents."""

    def to_json(self) -> dict[str, Any]:
        """Return the metrics as plain values, in percent."""
        return {
            "name": self.name,
            "n": self.n,
            "acc@1": percent(self.acc1),
            "acc@5": percent(self.acc5),
            "interval": self.interval.to_json(),
        }


def sub_populations(
    result: LinkingResult, base: KnowledgeBase, training: Sequence[LinkQuery] | None = None
) -> list[Population]:
    """Score the populations of GenBioEL's table; empty ones have size 0.

    Args:
        result: The evaluation.
        base: The knowledge base that was searched.
        training: Training gold; None: populations that need it are left out.
    """
    flags = population_flags(result, base, training)
    return [_score(name, result.judgements, mask) for name, mask in flags.items()]


def population_flags(
    result: LinkingResult, base: KnowledgeBase, training: Sequence[LinkQuery] | None = None
) -> dict[str, Flags]:
    """Return which queries are in each population of :func:`sub_populations`.

    Args:
        result: The evaluation.
        base: The knowledge base that was searched.
        training: Training gold; None: populations that need it are left out.
    """
    queries = result.resolved.queries
    single = np.array([len(query.mention.split()) == 1 for query in queries])
    ids = [base.ids_of(query.gold) for query in queries]
    direct = [  # each part is, up to normalisation, a name of a gold concept
        all(any(match.concept in gold for match in base.find(part)) for part in query.parts)
        for query, gold in zip(queries, ids, strict=True)
    ]
    flags: dict[str, Flags] = {
        "overall": np.ones(len(queries), dtype=np.bool_),
        "single word": single,
        "multi word": ~single,
        "not a direct match": ~np.array(direct),
    }
    if result.resolved.n_unreachable:
        flags[REACHABLE] = ~np.array(result.resolved.unreachable)
    if training is not None:
        known = resolve_gold(training, StoreIds(base)).queries
        mentions = {query.mention.lower() for query in known}
        concepts = Counter(concept for query in known for concept in query.gold)
        # ties in frequency are broken by id
        ranked = sorted(concepts, key=lambda concept: (-concepts[concept], concept))
        top = frozenset(ranked[:TOP_CONCEPTS])
        flags |= {
            "unseen mention": np.array([q.mention.lower() not in mentions for q in queries]),
            "unseen concept": np.array([q.gold.isdisjoint(concepts) for q in queries]),
            f"top {TOP_CONCEPTS} concepts": np.array([not q.gold.isdisjoint(top) for q in queries]),
        }
    return flags


def score_reachable(result: LinkingResult) -> Population:
    """Score the queries whose concepts the store has: the linker without the gaps of the store.

    Args:
        result: The evaluation.
    """
    mask = ~np.array(result.resolved.unreachable, dtype=np.bool_)
    return _score(REACHABLE, result.judgements, mask)


def similarity_buckets(result: LinkingResult, base: KnowledgeBase) -> list[Population]:
    """Score queries by the similarity of the mention to the most similar gold name.

    Similarity is the cosine of character 3-gram counts of the normalised texts.

    Args:
        result: The evaluation.
        base: The knowledge base that was searched.
    """
    similarities = np.array([name_similarity(query, base) for query in result.resolved.queries])
    populations = []
    for low, high in pairwise([*BUCKETS, np.inf]):
        label = f"{low:.1f} to {high:.1f}" if high < np.inf else "1.0 (a gold name)"
        mask = (similarities >= low) & (similarities < high)
        populations.append(_score(label, result.judgements, mask))
    return populations


def name_similarity(query: LinkQuery, base: KnowledgeBase) -> float:
    """Return the cosine of the mention and the most similar gold name; 0 if there is none.

    Args:
        query: A query with resolved gold ids.
        base: The knowledge base that was searched.
    """
    grams = _grams(query.mention)
    names = _gold_names(query, base)
    return max((_cosine(grams, _grams(name)) for name in names), default=0.0)


def _gold_names(query: LinkQuery, base: KnowledgeBase) -> set[str]:
    """Return the normalised names of all gold concepts."""
    rows = base.rows_of(query.gold)
    return {normalise(name.text) for row in rows for name in base.concept_at(row).names}


def _grams(text: str) -> Counter[str]:
    padded = f" {normalise(text)} "
    return Counter(padded[k : k + 3] for k in range(max(len(padded) - 2, 1)))


def _cosine(a: Counter[str], b: Counter[str]) -> float:
    if a == b:
        return 1.0
    product = sum(n * b[gram] for gram, n in a.items())
    # rounding must not give different texts the cosine of equal ones
    return min(product / (hypot(*a.values()) * hypot(*b.values())), 1.0 - 1e-9)


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


class ErrorCause(StrEnum):
    """Causes of error: what the mention has that the store lacks. The first that applies counts."""

    COMPOSITE = "composite mention"
    AMBIGUOUS = "ambiguous name"
    ANNOTATION = "annotation doubt"
    ABBREVIATION = "abbreviation"
    OTHERS_NAME = "name of another concept only"
    SPELLING = "other spelling or word order"
    NO_NAME = "no name in the store"
    OTHER = "other"


CAUSES = {
    ErrorCause.COMPOSITE: "the mention means several concepts, or has several parts",
    ErrorCause.AMBIGUOUS: "the mention is a name of the gold concept and of another one",
    ErrorCause.ANNOTATION: "the same mention has another gold concept elsewhere in the gold",
    ErrorCause.ABBREVIATION: "a short form, which is no name of the gold concept",
    ErrorCause.OTHERS_NAME: "the mention is a name of another concept, but not of the gold one",
    ErrorCause.SPELLING: "a name of the gold concept has like words, in any order",
    ErrorCause.NO_NAME: "the gold concept, or a name of it with like words, is not in the store",
    ErrorCause.OTHER: "the mention is a name of the gold concept only, or the gold is NIL",
}
"""Meaning of each cause."""
LIKE_WORDS = 0.5
"""Similarity from which two words may be spellings or forms of one."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """A wrong answer beside the right one."""

    mention: str
    """Text of the mention."""
    document: str
    """Id of its document; empty if unknown."""
    gold: str
    """Id of the right concept; empty for NIL."""
    gold_name: str
    """Preferred name of the right concept."""
    predicted: str
    """Id of the first answer; empty for NIL."""
    predicted_name: str
    """Name with which the first answer was found."""
    matched: str
    """The matched name of the predicted concept."""
    rank: int | None
    """Rank of the right concept, from 1; None if it was not found."""
    kind: ErrorKind
    """The kind of error, by what the answer is to the right one."""
    cause: ErrorCause
    """Probable cause of the error, by what the mention has that the names lack."""


def find_mistakes(result: LinkingResult, base: KnowledgeBase) -> list[Mistake]:
    """Return all queries whose first answer is not certainly right, in order.

    Args:
        result: The evaluation.
        base: The knowledge base that was searched.
    """
    golds: defaultdict[str, set[frozenset[str]]] = defaultdict(set)
    for query in result.resolved.queries:
        golds[query.mention.lower()].add(query.gold)
    doubtful = {mention for mention, found in golds.items() if len(found) > 1}
    mistakes = []
    for row in result.rows:
        if row.right == 1:
            continue
        gold = sorted(row.query.gold)
        rows = map(base.find_row, gold)
        names = ["(not in the store)" if n is None else base.name_at(n) for n in rows]
        firsts = [ranked[0] for ranked in row.answers if ranked]
        mistakes.append(
            Mistake(
                row.query.mention,
                row.query.document,
                " ".join(gold) or "NIL",
                "; ".join(dict.fromkeys(names)),
                " ".join(dict.fromkeys(c.concept for c in firsts)) or "NIL",
                "; ".join(dict.fromkeys(c.concept_name for c in firsts)),
                "; ".join(dict.fromkeys(c.name for c in firsts)),
                row.rank,
                _kind(row, base, result.resolved.unknown),
                _cause(row.query, base, doubtful),
            )
        )
    return mistakes


def count_kinds(mistakes: Sequence[Mistake]) -> dict[ErrorKind, int]:
    """Count mistakes by kind, the most frequent first.

    Args:
        mistakes: The mistakes.
    """
    counts = Counter(mistake.kind for mistake in mistakes)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def count_causes(mistakes: Sequence[Mistake]) -> dict[ErrorCause, int]:
    """Count mistakes by cause, in the order of causes; those that do not occur count 0.

    Args:
        mistakes: The mistakes.
    """
    counts = Counter(mistake.cause for mistake in mistakes)
    return {cause: counts[cause] for cause in ErrorCause}


def _cause(query: LinkQuery, base: KnowledgeBase, doubtful: Collection[str]) -> ErrorCause:
    """Return the cause of a wrong answer; ``doubtful`` are mentions with several golds."""
    if query.is_nil:
        return ErrorCause.OTHER
    if query.is_composite or len(query.parts) > 1:
        return ErrorCause.COMPOSITE
    ids = base.ids_of(query.gold)
    if not ids:
        return ErrorCause.NO_NAME
    named = {match.concept in ids for match in base.find(query.mention)}
    if named == {True, False}:
        return ErrorCause.AMBIGUOUS
    if query.mention.lower() in doubtful:
        return ErrorCause.ANNOTATION
    if True in named:
        return ErrorCause.OTHER
    names = _gold_names(query, base)
    if is_short_form(query.mention, names):
        return ErrorCause.ABBREVIATION
    if named:
        return ErrorCause.OTHERS_NAME
    words = normalise(query.mention).split()
    alike = any(have_like_words(words, name.split()) for name in names)
    return ErrorCause.SPELLING if alike else ErrorCause.NO_NAME


def have_like_words(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether two names have as many words, and each word is like one of the other.

    Args:
        a: Words of a name.
        b: Words of another.

    >>> have_like_words(["tumours", "breast"], ["breast", "tumor"])
    True
    >>> have_like_words(["breast", "cancer"], ["breast", "tumor"])
    False
    """
    left = [_grams(word) for word in b]
    if len(a) != len(left):
        return False
    for word in map(_grams, a):
        nearest = max(left, key=lambda other: _cosine(word, other))
        if _cosine(word, nearest) < LIKE_WORDS:
            return False
        left.remove(nearest)
    return True


def is_short_form(mention: str, names: Iterable[str]) -> bool:
    """Whether a mention has several capitals and no space, or the initials of one of some names.

    Args:
        mention: The mention.
        names: Names that it may abbreviate.

    >>> is_short_form("PWS", []), is_short_form("pws", ["Prader Willi syndrome"])
    (True, True)
    >>> is_short_form("Fever", ["pyrexia of unknown origin"])
    False
    """
    letters = [character for character in mention if character.isalpha()]
    capitals = sum(character.isupper() for character in letters)
    if " " not in mention and capitals >= 2 and 2 * capitals >= len(letters):
        return True
    return any(abbreviates(mention, name) for name in names)


def _kind(row: QueryRow, base: KnowledgeBase, unknown: frozenset[str]) -> ErrorKind:
    if row.query.is_nil:
        return ErrorKind.NIL_MISSED
    if row.answered_nil:
        return ErrorKind.NIL_GIVEN if any(row.answers) else ErrorKind.NO_ANSWER
    if row.query.gold <= unknown:
        return ErrorKind.NOT_IN_STORE
    if row.right > 0:
        return ErrorKind.TIED
    gold = base.ids_of(row.query.gold)
    firsts = [ranked[0] for ranked in row.answers if ranked]
    if any(first.concept in gold for first in firsts):
        return ErrorKind.PART_MISSED
    for first in firsts:
        if canonical_id(first.concept) not in base:
            continue
        if any(match.concept in gold for match in base.find(first.name)):
            return ErrorKind.SAME_NAME
        if any(first.concept in base.parents(concept) for concept in gold):
            return ErrorKind.BROADER
        if any(first.concept in base.children(concept) for concept in gold):
            return ErrorKind.NARROWER
    return ErrorKind.NOT_FOUND if row.rank is None else ErrorKind.RANKED_LOWER
