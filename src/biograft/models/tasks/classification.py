"""Text classification, text matching and natural language inference.

One model serves all three: the one that transformers has for the labels of a text or a pair of
texts. Exactly one class holds (softmax), or each class holds or not by itself (sigmoid,
multi-label).
"""

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
from biograft.errors import ConfigError
from biograft.metrics import ClassReport, Counts
from biograft.models import TextEncoder
from biograft.models.tasks.model import LabelNetwork, Predicting
from biograft.models.tasks.task import ClassificationConfig, InferenceConfig, MatchingConfig
from biograft.models.tasks.tokens import SequenceTokenizer, TextSequence
from biograft.text.tasks.registry import ClassExample, Example, labels_of, texts_of
from biograft.text.tasks.rows import to_examples


@dataclass(frozen=True, slots=True)
class ClassPrediction:
    """The predicted classes of an example, with their probabilities."""

    labels: tuple[str, ...]
    """One class; in multi-label classification any number."""
    probabilities: tuple[float, ...]
    """Probability of each class of the task, in order."""

    @property
    def label(self) -> str:
        """The first class; empty if there is none."""
        return self.labels[0] if self.labels else ""


class ClassDecision(Protocol):
    """The loss over class scores, and the prediction made from them."""

    def loss(self, scores: Tensor, items: Sequence[TextSequence]) -> Tensor:
        """Compute the loss of a batch: (texts, labels) to a number.

        Args:
            scores: Scores of the classes: (texts, classes).
            items: Texts with gold classes.
        """

    def predict(self, scores: Tensor) -> ClassPrediction:
        """Choose classes for one text: (labels,)."""


class OneClass:
    """Exactly one class holds: softmax."""

    def __init__(self, labels: tuple[str, ...]) -> None:
        self._labels = labels

    def loss(self, scores: Tensor, items: Sequence[TextSequence]) -> Tensor:
        """Compute the mean over texts of -log p of the gold class."""
        gold = torch.tensor([item.labels[0] for item in items], device=scores.device)
        return nn.functional.cross_entropy(scores, gold)

    def predict(self, scores: Tensor) -> ClassPrediction:
        """Choose the most probable class."""
        best = int(scores.argmax())
        return ClassPrediction((self._labels[best],), (float(scores.softmax(0)[best]),))


class SeveralClasses:
    """Each class holds or not by itself: sigmoid.

    Args:
        labels: Names of the classes, in the order of the scores.
        threshold: Probability from which on a class holds.
    """

    def __init__(self, labels: tuple[str, ...], threshold: float) -> None:
        self._labels, self._threshold = labels, threshold

    def loss(self, scores: Tensor, items: Sequence[TextSequence]) -> Tensor:
        """Compute the mean binary cross-entropy over texts and classes."""
        gold = torch.zeros(scores.shape)
        for row, item in enumerate(items):
            gold[row, list(item.labels)] = 1.0
        return nn.functional.binary_cross_entropy_with_logits(scores, gold.to(scores.device))

    def predict(self, scores: Tensor) -> ClassPrediction:
        """Choose all classes above the threshold, in their order."""
        chosen = [
            (label, probability)
            for label, probability in zip(self._labels, scores.sigmoid().tolist(), strict=True)
            if probability > self._threshold
        ]
        return ClassPrediction(tuple(label for label, _ in chosen), tuple(p for _, p in chosen))


Config = TypeVar("Config", bound=InferenceConfig)


class ClassModel(Predicting[ClassPrediction], Generic[Config]):
    """An encoder with scores of classes, for one text or a pair of texts.

    Args:
        encoder: Encoder, which is trained.
        config: Settings of the task.
        labels: Names of the classes, in the order of the scores.
    """

    kind = ""

    def __init__(self, encoder: TextEncoder, config: Config, labels: tuple[str, ...]) -> None:
        self.config, self.labels = config, labels
        self.texts = SequenceTokenizer(encoder)
        self.decision: ClassDecision = OneClass(labels)
        several = isinstance(config, ClassificationConfig) and config.several
        problem = f"{'multi' if several else 'single'}_label_classification"
        self.network = LabelNetwork(encoder, labels, config.dropout, problem_type=problem)

    @classmethod
    def from_examples(
        cls, encoder: TextEncoder, config: Config, examples: Sequence[Example]
    ) -> Self:
        """Create an untrained model for the classes of some examples.

        Args:
            encoder: Encoder, which is trained.
            config: Settings of the task.
            examples: Training examples.
        """
        labels = sorted({label for example in examples for label in labels_of(example)})
        if len(labels) < 2:
            raise ConfigError(f"{cls.kind}: expected at least 2 labels, found {labels}")
        return cls(encoder, config, tuple(labels))

    @property
    def counted(self) -> tuple[str, ...]:
        """The classes of micro F1; empty means all."""
        return ()

    def settings(self) -> Mapping[str, Any]:
        """Return the classes of micro F1."""
        return {"counted": list(self.counted or self.labels)}

    def training_items(
        self, examples: Sequence[Example]
    ) -> tuple[list[TextSequence], Counter[str]]:
        """Return labelled sequences; truncated texts are counted."""
        index = {label: row for row, label in enumerate(self.labels)}
        sequences = self._tokenize(examples)
        labelled = [
            replace(sequence, labels=tuple(index[label] for label in labels_of(example)))
            for example, sequence in zip(examples, sequences, strict=True)
        ]
        return labelled, self.texts.count_cut(sequences)

    def loss(
        self, network: nn.Module, items: Sequence[TextSequence]
    ) -> tuple[Tensor, dict[str, float]]:
        """Compute the loss of a batch."""
        (scores,) = network(self.network.collate(items))
        return self.decision.loss(scores, items), {}

    def predict(self, examples: Any, precision: str = "auto") -> list[ClassPrediction]:
        """Predict the classes of each example, or text."""
        examples = to_examples(self.record, examples)
        predictions = [ClassPrediction((), ())] * len(examples)
        for row, (scores,) in self.network.predict(self._tokenize(examples), precision):
            predictions[row] = self.decision.predict(scores)
        return predictions

    def report(
        self, examples: Sequence[Example], predictions: Sequence[ClassPrediction]
    ) -> ClassificationReport:
        """Evaluate predictions; classes unknown to the model count as missed."""
        gold = [labels_of(example) for example in examples]
        return classification_report(gold, [each.labels for each in predictions], self.counted)

    def write(
        self, examples: Sequence[Example], predictions: Sequence[ClassPrediction], path: Path
    ) -> None:
        """Write one line for each example: row, id, gold and predicted classes.

        Args:
            examples: Examples of the file.
            predictions: Prediction for each.
            path: File to write.
        """
        with new_file(path, overwrite=True) as file:
            for row, (example, predicted) in enumerate(zip(examples, predictions, strict=True)):
                line = {
                    "row": row,
                    "id": getattr(example, "id", ""),
                    "gold": labels_of(example),
                    "labels": predicted.labels,
                    "probabilities": predicted.probabilities,
                }
                file.write(f"{json.dumps(line, ensure_ascii=False)}\n".encode())

    def _tokenize(self, examples: Sequence[Example]) -> list[TextSequence]:
        return self.texts.read([texts_of(example) for example in examples])


class InferenceModel(ClassModel[InferenceConfig]):
    """Natural language inference: the relation between two texts, one of several classes."""

    kind, record = "inference", "pair"


class MatchingModel(ClassModel[MatchingConfig]):
    """Text matching: whether two texts mean the same, with two classes."""

    kind, record = "matching", "pair"

    @classmethod
    def from_examples(
        cls, encoder: TextEncoder, config: MatchingConfig, examples: Sequence[Example]
    ) -> Self:
        """Create an untrained model for two labels.

        Args:
            encoder: Encoder, which is trained.
            config: Settings of the task.
            examples: Training examples.
        """
        model = super().from_examples(encoder, config, examples)
        if len(model.labels) != 2 or model.config.positive not in model.labels:
            raise ConfigError(
                f"matching: expected 2 labels, one of them config.positive = "
                f"{model.config.positive!r}, found {', '.join(model.labels)}; more labels are "
                "learned by inference"
            )
        return model

    @property
    def counted(self) -> tuple[str, ...]:
        """The class of matching texts."""
        return (self.config.positive,)


class ClassificationModel(ClassModel[ClassificationConfig]):
    """Text classification, of one text or a text with its context; optionally multi-label.

    Args:
        encoder: Encoder, which is trained.
        config: Settings of the task.
        labels: Names of the classes, in the order of the scores.
    """

    kind, record = "classification", "class"

    def __init__(
        self, encoder: TextEncoder, config: ClassificationConfig, labels: tuple[str, ...]
    ) -> None:
        super().__init__(encoder, config, labels)
        if config.several:
            self.decision = SeveralClasses(labels, config.threshold)

    @classmethod
    def from_examples(
        cls, encoder: TextEncoder, config: ClassificationConfig, examples: Sequence[Example]
    ) -> Self:
        """Create an untrained model for the classes of some examples, which may be multi-label.

        Args:
            encoder: Encoder, which is trained.
            config: Settings of the task.
            examples: Training examples.
        """
        if any(example.multi for example in examples if isinstance(example, ClassExample)):
            config = replace(config, several=True)
        return super().from_examples(encoder, config, examples)


Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClassificationReport:
    """Micro and macro F1 and accuracy of classification, with the chance level."""

    classes: ClassReport
    counted: tuple[str, ...]
    """The classes of micro precision, recall and F1; macro F1 is over all classes."""
    n: int
    n_correct: int
    chance: dict[str, Any]

    @property
    def micro(self) -> Counts:
        """The summed counts of the classes in ``counted``."""
        return self._counted.micro

    @property
    def accuracy(self) -> float:
        """The fraction of examples whose classes are all correct."""
        return self.n_correct / self.n if self.n else 0.0

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the classes that occur in the gold labels or the predictions."""
        return self.classes.macro_f1

    def to_json(self) -> dict[str, Any]:
        """Return all metrics as plain values."""
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


def classification_report(
    gold: Sequence[Labels], predictions: Sequence[Labels], counted: Collection[str] = ()
) -> ClassificationReport:
    """Compare the classes of each example; micro F1 is over ``counted``, or over all classes.

    Args:
        gold: Gold classes of each example.
        predictions: Predicted classes of each example.
        counted: Classes that micro F1 is over; empty: all.
    """
    if len(gold) != len(predictions):
        raise ConfigError(f"{len(predictions)} predictions for {len(gold)} examples")
    right, wrong, missed = Counter[str](), Counter[str](), Counter[str]()
    for expected, predicted in zip(map(set, gold), map(set, predictions), strict=True):
        right.update(expected & predicted)
        wrong.update(predicted - expected)
        missed.update(expected - predicted)
    names = sorted({*right, *wrong, *missed})
    classes = {name: Counts(right[name], wrong[name], missed[name]) for name in names}
    return ClassificationReport(
        classes=ClassReport(classes),
        counted=tuple(counted) or tuple(names),
        n=len(gold),
        n_correct=sum(set(g) == set(p) for g, p in zip(gold, predictions, strict=True)),
        chance=_chance(gold, counted),
    )


def _chance(gold: Sequence[Labels], counted: Collection[str]) -> dict[str, Any]:
    """Compute the best accuracy and the best F1 of a constant prediction."""
    label_sets = Counter(tuple(sorted(labels)) for labels in gold)
    frequency = Counter(label for labels in gold for label in set(labels))
    n_counted = sum(n for label, n in frequency.items() if not counted or label in counted)
    if not label_sets:
        return {}
    most_frequent, n_correct = min(label_sets.items(), key=lambda item: (-item[1], item[0]))
    f1 = 0.0
    for constant in label_sets:
        labels = [label for label in constant if not counted or label in counted]
        right = sum(frequency[label] for label in labels)
        wrong = len(labels) * len(gold) - right
        f1 = max(f1, Counts(right, wrong, n_counted - right).f1)
    return {"accuracy": n_correct / len(gold), "labels": list(most_frequent), "f1": f1}
