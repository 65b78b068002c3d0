"""What a kind of task gives to fine-tuning: its examples as items, its loss, its answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from torch import Tensor, nn

from biograft.tasks.batches import Sized
from biograft.tasks.network import TaskNetwork

Example_contra = TypeVar("Example_contra", contravariant=True)
Answer = TypeVar("Answer")


class Report(Protocol):
    """How answers compare with what examples say."""

    def to_json(self) -> dict[str, Any]:
        """Give all figures as plain values, those of its kind by their names among them.

        The level of chance, where it is known, is under ``chance``.
        """


class TaskModel(Protocol[Example_contra, Answer]):
    """A model of one task, trained or to be trained.

    Examples are what its files hold (documents, pairs, questions), answers the like of them.
    """

    kind: str
    network: TaskNetwork
    labels: tuple[str, ...]
    config: Any

    def learnable(self, examples: Sequence[Example_contra]) -> tuple[Sequence[Sized], Counter[str]]:
        """Make the sequences to learn from; what cannot be learned is counted by reason."""

    def loss(self, network: nn.Module, items: Sequence[Any]) -> tuple[Tensor, dict[str, float]]:
        """Compute the loss of a batch."""

    def predict(self, examples: Sequence[Example_contra], precision: str = "auto") -> list[Answer]:
        """Answer each example."""

    def report(self, examples: Sequence[Example_contra], answers: Sequence[Answer]) -> Report:
        """Compare answers with what the examples say."""

    def write(
        self, examples: Sequence[Example_contra], answers: Sequence[Answer], path: Path
    ) -> None:
        """Write answers as JSON lines."""

    def settings(self) -> Mapping[str, Any]:
        """Give what is to be known of the model besides labels, configuration and weights."""


@runtime_checkable
class ChoosingModel(Protocol):
    """A model each epoch of which reads a choice of what there is to learn."""

    def choose(self, items: Sequence[Any], draw: np.random.Generator) -> Sequence[Sized]:
        """Give the items of an epoch, as many as were given, with some of their parts."""
