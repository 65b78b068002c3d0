"""Precision, recall and F1 of mentions, documents, entities and labels; agreement of raters."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from biograft.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of right, wrong and missed answers (true and false positives, false negatives).

    A division by zero gives 0: precision without answers, recall without gold.
    """

    right: int = 0
    """Number of right answers."""
    wrong: int = 0
    """Number of wrong answers."""
    missed: int = 0
    """Number of gold items without an answer."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.right + other.right, self.wrong + other.wrong, self.missed + other.missed
        )

    @classmethod
    def from_answers(cls, gold: Iterable[Hashable], answers: Iterable[Hashable]) -> Counts:
        """Compare answers with the gold standard; each of them matches once.

        Args:
            gold: The right answers, in any order.
            answers: The predicted ones, in any order.
        """
        expected, predicted = Counter(iter(gold)), Counter(iter(answers))
        right = (expected & predicted).total()
        return cls(right, predicted.total() - right, expected.total() - right)

    @property
    def precision(self) -> float:
        """Fraction of the answers that are right."""
        return self.right / (self.right + self.wrong) if self.right else 0.0

    @property
    def recall(self) -> float:
        """Fraction of the gold answers that were predicted."""
        return self.right / (self.right + self.missed) if self.right else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.right / (2 * self.right + self.wrong + self.missed) if self.right else 0.0

    def to_json(self, *, in_percent: bool = True) -> dict[str, Any]:
        """Return the metrics and the counts as plain values.

        Args:
            in_percent: Give the metrics in percent, not as fractions.
        """
        convert = percent if in_percent else float
        metrics = {name: convert(getattr(self, name)) for name in ("precision", "recall", "f1")}
        return {**metrics, **asdict(self)}


def percent(value: float) -> float:
    """Convert a fraction to percent with 4 decimals.

    Args:
        value: The fraction.
    """
    return round(100 * value, 4)


Entity = tuple[Hashable, int, int, str]
"""Document, start, end and type."""


@dataclass(frozen=True, slots=True)
class ClassReport:
    """The counts of each class."""

    classes: Mapping[str, Counts]
    """Right, wrong and missed items by class."""

    @property
    def micro(self) -> Counts:
        """The counts of all classes together."""
        return sum(self.classes.values(), Counts())

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the classes that occur in gold or answers; 0 without any."""
        occurring = [each for each in self.classes.values() if each != Counts()]
        scores = [counts.f1 for counts in occurring]
        return sum(scores) / len(scores) if scores else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return all metrics as plain values."""
        return {
            **self.micro.to_json(in_percent=False),
            "macro_f1": self.macro_f1,
            "classes": {
                name: counts.to_json(in_percent=False) for name, counts in self.classes.items()
            },
        }


def entity_report(gold: Iterable[Entity], answers: Iterable[Entity]) -> ClassReport:
    """Compare entities by exact span and type; duplicates count once.

    Args:
        gold: The right entities.
        answers: The predicted ones.
    """
    expected, predicted = set(gold), set(answers)
    right = Counter(entity[3] for entity in expected & predicted)
    wrong = Counter(entity[3] for entity in predicted - expected)
    missed = Counter(entity[3] for entity in expected - predicted)
    names = sorted({*right, *wrong, *missed})
    return ClassReport({name: Counts(right[name], wrong[name], missed[name]) for name in names})


def label_report(
    gold: Sequence[str], answers: Sequence[str], positive: Collection[str]
) -> ClassReport:
    """Compare one label an example, counting the positive classes.

    Args:
        gold: The right label of each example.
        answers: The predicted ones.
        positive: Labels to count.
    """
    if len(gold) != len(answers):
        raise ConfigError(f"{len(answers)} answers to {len(gold)} examples")
    both = Counter(zip(gold, answers, strict=True))
    expected, predicted = Counter(gold), Counter(answers)
    return ClassReport(
        {
            name: Counts(
                both[name, name],
                predicted[name] - both[name, name],
                expected[name] - both[name, name],
            )
            for name in sorted(positive)
        }
    )


def cohen_kappa(pairs: Sequence[tuple[Hashable, Hashable]]) -> float | None:
    """Return Cohen's kappa of two raters; None if it is undefined.

    kappa = (p_o - p_e) / (1 - p_e), where p_o is the fraction of equal labels, and p_e the one that
    is expected if each rater gave labels at random, as often as now (Cohen 1960).

    Args:
        pairs: Labels of the first and of the second rater for each item.

    >>> cohen_kappa([("a", "a"), ("a", "b"), ("b", "b"), ("b", "b")])
    0.5
    """
    n = len(pairs)
    one, two = (Counter(pair[i] for pair in pairs) for i in (0, 1))
    by_chance = sum(one[label] * two[label] for label in one)
    if by_chance == n * n:
        return None
    return (n * sum(a == b for a, b in pairs) - by_chance) / (n * n - by_chance)


@dataclass(frozen=True, slots=True, order=True)
class ConceptSpan:
    """A span of a document and its concepts; without concepts: NIL."""

    document: str
    """Id of the document."""
    start: int
    """Character offset of its first character."""
    end: int
    """Character offset behind its last character."""
    concepts: frozenset[str] = frozenset()
    """Ids of the concepts; empty for NIL."""


def mention_counts(
    gold: Iterable[ConceptSpan], answers: Iterable[ConceptSpan], *, overlap: bool = False
) -> Counts:
    """Compare mentions by span and set of concepts; each gold mention matches once.

    Args:
        gold: The gold mentions of any documents.
        answers: The predicted ones.
        overlap: Overlapping spans match, too; they are paired from left to right.
    """
    if not overlap:
        return Counts.from_answers(gold, answers)
    unmatched: dict[tuple[str, frozenset[str]], list[ConceptSpan]] = defaultdict(list)
    for span in sorted(gold, key=_by_end):
        unmatched[span.document, span.concepts].append(span)
    n_gold = sum(map(len, unmatched.values()))
    right = n_answers = 0
    for answer in sorted(answers, key=_by_end):
        n_answers += 1
        candidates = unmatched[answer.document, answer.concepts]
        for index, span in enumerate(candidates):
            if span.start < answer.end and answer.start < span.end:
                del candidates[index]
                right += 1
                break
    return Counts(right, n_answers - right, n_gold - right)


def _by_end(span: ConceptSpan) -> tuple[int, int]:
    return span.end, span.start


def document_counts(gold: Iterable[ConceptSpan], answers: Iterable[ConceptSpan]) -> Counts:
    """Compare the sets of concepts of each document; documents without answers are missed.

    Args:
        gold: The gold mentions of any documents.
        answers: The predicted ones.
    """
    return Counts.from_answers(
        *(
            {(span.document, concept) for span in spans for concept in span.concepts}
            for spans in (gold, answers)
        )
    )
