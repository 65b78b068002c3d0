"""Precision, recall and F1 from counts of right, wrong and missed answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from biograft.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Counts:
    """How many answers were right, how many wrong, how many gold ones were missed.

    What would be a division by zero is 0: without answers the precision, without gold the recall.
    """

    right: int = 0
    wrong: int = 0
    missed: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.right + other.right, self.wrong + other.wrong, self.missed + other.missed
        )

    @property
    def precision(self) -> float:
        """Share of the answers that are right."""
        return self.right / (self.right + self.wrong) if self.right else 0.0

    @property
    def recall(self) -> float:
        """Share of the gold answers that were given."""
        return self.right / (self.right + self.missed) if self.right else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.right / (2 * self.right + self.wrong + self.missed) if self.right else 0.0


Entity = tuple[Hashable, int, int, str]
"""Its text, its bounds there, its type."""


@dataclass(frozen=True, slots=True)
class ClassReport:
    """The counts of each class."""

    classes: Mapping[str, Counts]

    @property
    def micro(self) -> Counts:
        """The counts of all classes together."""
        return sum(self.classes.values(), Counts())

    @property
    def macro_f1(self) -> float:
        """The mean of the classes' F1; 0 without classes."""
        scores = [counts.f1 for counts in self.classes.values()]
        return sum(scores) / len(scores) if scores else 0.0

    def to_json(self) -> dict[str, Any]:
        """Give all figures as plain values."""
        return {
            **_figures(self.micro),
            "macro_f1": self.macro_f1,
            "classes": {name: _figures(counts) for name, counts in self.classes.items()},
        }


def entity_report(gold: Iterable[Entity], answers: Iterable[Entity]) -> ClassReport:
    """Compare entities by exact span and type; one that is said twice counts once."""
    expected, given = set(gold), set(answers)
    right = Counter(entity[3] for entity in expected & given)
    wrong = Counter(entity[3] for entity in given - expected)
    missed = Counter(entity[3] for entity in expected - given)
    names = sorted({*right, *wrong, *missed})
    return ClassReport({name: Counts(right[name], wrong[name], missed[name]) for name in names})


def label_report(
    gold: Sequence[str], answers: Sequence[str], positive: Collection[str]
) -> ClassReport:
    """Compare one label an example, counting the positive classes."""
    if len(gold) != len(answers):
        raise ConfigError(f"{len(answers)} answers to {len(gold)} examples")
    both = Counter(zip(gold, answers, strict=True))
    expected, given = Counter(gold), Counter(answers)
    return ClassReport(
        {
            name: Counts(
                both[name, name], given[name] - both[name, name], expected[name] - both[name, name]
            )
            for name in sorted(positive)
        }
    )


def _figures(counts: Counts) -> dict[str, Any]:
    return {
        "precision": counts.precision,
        "recall": counts.recall,
        "f1": counts.f1,
        "right": counts.right,
        "wrong": counts.wrong,
        "missed": counts.missed,
    }


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
