"""Precision, recall and F1 by class and over all classes: entities of a type, labels of examples.

Entities are right if span and type are (exact match, as seqeval and the CoNLL script count).
Of labels only the *positive* classes count, as BLURB does for relations: an example of the class
that says "no relation" is neither right nor missed, but a relation seen in it is wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from biograft.errors import ConfigError
from biograft.metrics.counts import Counts

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
