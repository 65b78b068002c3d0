"""Precision, recall and F1 of finding *and* linking, by mention and by document.

By mention: an answer is right if a gold mention of the same document has its span and its
concepts. By document (BioCreative's rule for curation): the set of concepts of each document
counts, wherever they stand. Both are counted over all documents together (micro).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from biograft.metrics.counts import Counts


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of a document and the concepts it was linked to; none of them: NIL."""

    document: str
    start: int
    end: int
    concepts: frozenset[str] = frozenset()


def mention_counts(
    gold: Iterable[Span], answers: Iterable[Span], *, overlap: bool = False
) -> Counts:
    """Compare mentions: span and set of concepts; each gold mention is found once.

    With ``overlap``, spans need only overlap; they are then paired from left to right.
    """
    if overlap:
        return _overlapping(gold, answers)
    expected, given = Counter(gold), Counter(answers)
    right = (expected & given).total()
    return Counts(right, given.total() - right, expected.total() - right)


def _overlapping(gold: Iterable[Span], answers: Iterable[Span]) -> Counts:
    waiting: dict[tuple[str, frozenset[str]], list[Span]] = defaultdict(list)
    for span in sorted(gold, key=_by_end):
        waiting[span.document, span.concepts].append(span)
    n_gold = sum(map(len, waiting.values()))
    right = n_answers = 0
    for answer in sorted(answers, key=_by_end):
        n_answers += 1
        places = waiting[answer.document, answer.concepts]
        for place, span in enumerate(places):
            if span.start < answer.end and answer.start < span.end:
                del places[place]
                right += 1
                break
    return Counts(right, n_answers - right, n_gold - right)


def _by_end(span: Span) -> tuple[int, int]:
    return span.end, span.start


def document_counts(gold: Iterable[Span], answers: Iterable[Span]) -> Counts:
    """Compare the sets of concepts of each document; a document nobody answered is missed."""
    expected, given = set(_pairs(gold)), set(_pairs(answers))
    return Counts(len(expected & given), len(given - expected), len(expected - given))


def _pairs(spans: Iterable[Span]) -> Iterator[tuple[str, str]]:
    return ((span.document, concept) for span in spans for concept in span.concepts)
