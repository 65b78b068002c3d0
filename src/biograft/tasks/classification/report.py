"""How classes that were said compare with those that hold, and what chance reaches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from biograft.errors import ConfigError
from biograft.metrics import ClassReport, Counts

Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChoiceReport:
    """The counts of each class, those that F1 is about, and the examples answered wholly right."""

    classes: ClassReport
    counted: tuple[str, ...]
    """The classes whose precision, recall and F1 (micro) are told; all have their own in macro."""
    n: int
    n_right: int
    chance: dict[str, Any]

    @property
    def micro(self) -> Counts:
        """The counts of the classes that F1 is about, together."""
        return self._counted.micro

    @property
    def accuracy(self) -> float:
        """The share of examples whose classes are all right."""
        return self.n_right / self.n if self.n else 0.0

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the classes that hold somewhere or were said."""
        return self.classes.macro_f1

    def to_json(self) -> dict[str, Any]:
        """Give all figures as plain values."""
        return {
            **self._counted.to_json(),
            "accuracy": self.accuracy,
            "macro_f1": self.macro_f1,
            "classes": self.classes.to_json()["classes"],
            "counted": list(self.counted),
            "chance": self.chance,
        }

    @property
    def _counted(self) -> ClassReport:
        counts = self.classes.classes
        return ClassReport({name: counts[name] for name in self.counted if name in counts})


def choice_report(
    gold: Sequence[Labels], answers: Sequence[Labels], counted: Collection[str] = ()
) -> ChoiceReport:
    """Compare the classes of each example; F1 is about those ``counted``, or all of them."""
    if len(gold) != len(answers):
        raise ConfigError(f"{len(answers)} answers to {len(gold)} examples")
    right, wrong, missed = Counter[str](), Counter[str](), Counter[str]()
    for expected, said in zip(map(set, gold), map(set, answers), strict=True):
        right.update(expected & said)
        wrong.update(said - expected)
        missed.update(expected - said)
    names = sorted({*right, *wrong, *missed})
    classes = {name: Counts(right[name], wrong[name], missed[name]) for name in names}
    return ChoiceReport(
        classes=ClassReport(classes),
        counted=tuple(counted) or tuple(names),
        n=len(gold),
        n_right=sum(set(e) == set(a) for e, a in zip(gold, answers, strict=True)),
        chance=_chance(gold, counted),
    )


def _chance(gold: Sequence[Labels], counted: Collection[str]) -> dict[str, Any]:
    """Say what one and the same answer to all reaches: the best accuracy, and the best F1."""
    whole = Counter(tuple(sorted(labels)) for labels in gold)
    held = Counter(label for labels in gold for label in set(labels))
    n_counted = sum(n for label, n in held.items() if not counted or label in counted)
    if not whole:
        return {}
    answer, n_right = min(whole.items(), key=lambda item: (-item[1], item[0]))
    f1 = 0.0
    for said in whole:
        names = [name for name in said if not counted or name in counted]
        right = sum(held[name] for name in names)
        wrong = len(names) * len(gold) - right
        f1 = max(f1, Counts(right, wrong, n_counted - right).f1)
    return {"accuracy": n_right / len(gold), "answer": list(answer), "f1": f1}
