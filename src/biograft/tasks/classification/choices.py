"""Two ways to choose of classes: the one that fits best, or each that fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from biograft.tasks.sequences import TextSequence


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
