"""Two ways to choose of classes: the one that fits best, or each that fits."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn

from biograft.artifacts import new_file
from biograft.corpus.tasks.records import ClassExample, Example, labels_of, texts_of
from biograft.errors import ConfigError
from biograft.metrics import ClassReport, Counts
from biograft.nn import TextEncoder
from biograft.tasks.configs import ClassificationConfig, InferenceConfig, MatchingConfig
from biograft.tasks.network import LinearHead, TaskNetwork
from biograft.tasks.task import TaskKind, reader_of
from biograft.tasks.tokens import TextReader, TextSequence


@dataclass(frozen=True, slots=True)
class ClassAnswer:
    """The classes of an example, and how probable the model takes each to be."""

    labels: tuple[str, ...]
    """One; of several classes that may hold any number, or none."""
    probabilities: tuple[float, ...]

    @property
    def label(self) -> str:
        """The class; empty if none holds."""
        return self.labels[0] if self.labels else ""


class Choice(Protocol):
    """What scores of classes mean."""

    def loss(self, scores: Tensor, items: Sequence[TextSequence]) -> Tensor:
        """Compute the loss of a batch: (texts, labels) to a number."""

    def answer(self, scores: Tensor) -> ClassAnswer:
        """Choose classes for one text: (labels,)."""


class OneClass:
    """Exactly one class holds: softmax."""

    def __init__(self, labels: tuple[str, ...]) -> None:
        self._labels = labels

    def loss(self, scores: Tensor, items: Sequence[TextSequence]) -> Tensor:
        """Compute the mean over texts of -log p of the right class."""
        right = torch.tensor([item.labels[0] for item in items], device=scores.device)
        return nn.functional.cross_entropy(scores, right)

    def answer(self, scores: Tensor) -> ClassAnswer:
        """Choose the likeliest class."""
        number = int(scores.argmax())
        return ClassAnswer((self._labels[number],), (float(scores.softmax(0)[number]),))


class SeveralClasses:
    """Each class holds or not by itself: sigmoid."""

    def __init__(self, labels: tuple[str, ...], threshold: float) -> None:
        self._labels, self._threshold = labels, threshold

    def loss(self, scores: Tensor, items: Sequence[TextSequence]) -> Tensor:
        """Compute the mean over texts and classes of -log p of what is right."""
        right = torch.zeros(scores.shape)
        for row, item in enumerate(items):
            right[row, list(item.labels)] = 1.0
        return nn.functional.binary_cross_entropy_with_logits(scores, right.to(scores.device))

    def answer(self, scores: Tensor) -> ClassAnswer:
        """Choose all classes above the threshold, in their order."""
        said = [
            (label, probability)
            for label, probability in zip(self._labels, scores.sigmoid().tolist(), strict=True)
            if probability > self._threshold
        ]
        return ClassAnswer(tuple(name for name, _ in said), tuple(share for _, share in said))


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


Config = TypeVar("Config", bound=InferenceConfig)


class ClassModel(Generic[Config]):
    """An encoder with a linear head on the opening token, and what its scores mean."""

    kind = ""

    def __init__(self, encoder: TextEncoder, config: Config, labels: tuple[str, ...]) -> None:
        self.config, self.labels = config, labels
        self.texts = TextReader(encoder)
        self.choice: Choice = OneClass(labels)
        self.network = TaskNetwork(encoder, LinearHead(encoder.dim, len(labels)), config.dropout)

    @classmethod
    def start(cls, encoder: TextEncoder, config: Config, examples: Sequence[Example]) -> Self:
        """Make a model for the classes of some examples; it has learnt nothing yet."""
        labels = sorted({label for example in examples for label in labels_of(example)})
        if len(labels) < 2:
            raise ConfigError(f"{cls.kind}: expected at least 2 labels, found {labels}")
        return cls(encoder, config, tuple(labels))

    @property
    def counted(self) -> tuple[str, ...]:
        """The classes that F1 is about; none: all."""
        return ()

    def settings(self) -> Mapping[str, Any]:
        """Say which classes count in F1."""
        return {"counted": list(self.counted or self.labels)}

    def learnable(self, examples: Sequence[Example]) -> tuple[list[TextSequence], Counter[str]]:
        """Make the sequences to learn from; texts that are cut are counted."""
        numbers = {label: number for number, label in enumerate(self.labels)}
        sequences = self._read(examples)
        labelled = [
            replace(sequence, labels=tuple(numbers[label] for label in labels_of(example)))
            for example, sequence in zip(examples, sequences, strict=True)
        ]
        return labelled, self.texts.count_cut(sequences)

    def loss(
        self, network: nn.Module, items: Sequence[TextSequence]
    ) -> tuple[Tensor, dict[str, float]]:
        """Compute the loss of some texts."""
        (scores,) = network(self.network.collate(items))
        return self.choice.loss(scores, items), {}

    def predict(self, examples: Sequence[Example], precision: str = "auto") -> list[ClassAnswer]:
        """Answer each example with its class."""
        answers = [ClassAnswer((), ())] * len(examples)
        for row, (scores,) in self.network.read(self._read(examples), precision):
            answers[row] = self.choice.answer(scores)
        return answers

    def report(self, examples: Sequence[Example], answers: Sequence[ClassAnswer]) -> ChoiceReport:
        """Compare classes; those that were never learned are missed."""
        gold = [labels_of(example) for example in examples]
        return choice_report(gold, [answer.labels for answer in answers], self.counted)

    def write(
        self, examples: Sequence[Example], answers: Sequence[ClassAnswer], path: Path
    ) -> None:
        """Write a line for each example, in their order: which it is, its classes, the answer."""
        with new_file(path, overwrite=True) as file:
            for row, (example, answer) in enumerate(zip(examples, answers, strict=True)):
                said = {
                    "row": row,
                    "id": getattr(example, "id", ""),
                    "gold": labels_of(example),
                    "labels": answer.labels,
                    "probabilities": answer.probabilities,
                }
                file.write(f"{json.dumps(said, ensure_ascii=False)}\n".encode())

    def _read(self, examples: Sequence[Example]) -> list[TextSequence]:
        return self.texts.read([texts_of(example) for example in examples])


class InferenceModel(ClassModel[InferenceConfig]):
    """How two texts stand to each other: one of several classes."""

    kind = "inference"


class MatchingModel(ClassModel[MatchingConfig]):
    """Whether two texts match: two classes, of which one says so."""

    kind = "matching"

    @classmethod
    def start(
        cls, encoder: TextEncoder, config: MatchingConfig, examples: Sequence[Example]
    ) -> Self:
        """Make a model for two labels; it has learnt nothing yet."""
        model = super().start(encoder, config, examples)
        if len(model.labels) != 2 or model.config.positive not in model.labels:
            raise ConfigError(
                f"matching: expected 2 labels, one of them config.positive = "
                f"{model.config.positive!r}, found {', '.join(model.labels)}; more labels are "
                "learned by inference"
            )
        return model

    @property
    def counted(self) -> tuple[str, ...]:
        """The class of texts that match."""
        return (self.config.positive,)


class ClassificationModel(ClassModel[ClassificationConfig]):
    """The class of a text, or of a text with its context; several may hold at once."""

    kind = "classification"

    def __init__(
        self, encoder: TextEncoder, config: ClassificationConfig, labels: tuple[str, ...]
    ) -> None:
        super().__init__(encoder, config, labels)
        if config.several:
            self.choice = SeveralClasses(labels, config.threshold)

    @classmethod
    def start(
        cls, encoder: TextEncoder, config: ClassificationConfig, examples: Sequence[Example]
    ) -> Self:
        """Make a model for the classes of some examples, several at once if they say so."""
        if any(example.multi for example in examples if isinstance(example, ClassExample)):
            config = replace(config, several=True)
        return super().start(encoder, config, examples)


_FIGURES = ("f1", "accuracy", "macro_f1", "precision", "recall")

MATCHING = TaskKind(
    config=MatchingConfig,
    read=reader_of("pair"),
    start=MatchingModel.start,
    build=MatchingModel,
    figures=_FIGURES,
)
INFERENCE = TaskKind(
    config=InferenceConfig,
    read=reader_of("pair"),
    start=InferenceModel.start,
    build=InferenceModel,
    figures=_FIGURES,
)
CLASSIFICATION = TaskKind(
    config=ClassificationConfig,
    read=reader_of("class"),
    start=ClassificationModel.start,
    build=ClassificationModel,
    figures=_FIGURES,
)
