"""A model that says which class a text, or a pair of texts, is of."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from torch import Tensor, nn

from biograft.corpus.tasks.records import ClassExample, Example, labels_of, texts_of
from biograft.errors import ConfigError
from biograft.nn import TextEncoder
from biograft.runs import new_file
from biograft.tasks.classification.choices import Choice, ClassAnswer, OneClass, SeveralClasses
from biograft.tasks.classification.config import (
    ClassificationConfig,
    InferenceConfig,
    MatchingConfig,
)
from biograft.tasks.classification.report import ChoiceReport, choice_report
from biograft.tasks.heads import LinearHead
from biograft.tasks.network import TaskNetwork
from biograft.tasks.sequences import TextReader, TextSequence

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
