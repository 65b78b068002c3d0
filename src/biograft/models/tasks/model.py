"""Interface of task models (``TaskModel``), and length-sorted training batches.

To add a task, write one module with a model of this protocol and a ``TaskKind``, and register it
in ``tasks/task.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from torch import Tensor, nn

from biograft.errors import ConfigError
from biograft.models.tasks.network import TaskNetwork


class Sized(Protocol):
    """A training item with a length: one sequence, or several of which it returns the longest."""

    @property
    def tokens(self) -> Sequence[int]:
        """Token ids, special tokens included."""


Example_contra = TypeVar("Example_contra", contravariant=True)
Prediction = TypeVar("Prediction")


class Report(Protocol):
    """The evaluation of predictions against labelled examples."""

    def to_json(self) -> dict[str, Any]:
        """Return all metrics as plain values, those of ``TaskKind.metrics`` by name among them.

        The chance level, where it is known, is under ``chance``.
        """


class TaskModel(Protocol[Example_contra, Prediction]):
    """A model of one task, made of an encoder, a configuration and labels.

    Examples are what the files of the task hold (documents, pairs, questions). The class also has
    ``from_examples(encoder, config, examples)``, which makes an untrained model for their labels.
    """

    kind: str
    """The name in ``TASKS``, set by the run that creates the model and by ``open_task``."""
    network: TaskNetwork
    labels: tuple[str, ...]
    config: Any

    def training_items(
        self, examples: Sequence[Example_contra]
    ) -> tuple[Sequence[Sized], Counter[str]]:
        """Return the training sequences, and counts of what cannot be learned by reason."""

    def loss(self, network: nn.Module, items: Sequence[Any]) -> tuple[Tensor, dict[str, float]]:
        """Compute the loss of a batch."""

    def predict(
        self, examples: Sequence[Example_contra], precision: str = "auto"
    ) -> list[Prediction]:
        """Return one prediction for each example."""

    def report(
        self, examples: Sequence[Example_contra], predictions: Sequence[Prediction]
    ) -> Report:
        """Evaluate predictions against the labels of the examples."""

    def write(
        self, examples: Sequence[Example_contra], predictions: Sequence[Prediction], path: Path
    ) -> None:
        """Write predictions as JSON Lines."""

    def settings(self) -> Mapping[str, Any]:
        """Return further entries for the manifest of a saved model."""


@runtime_checkable
class ResamplingModel(Protocol):
    """A model that trains on a new sample in each epoch."""

    def sample_epoch(self, items: Sequence[Any], rng: np.random.Generator) -> Sequence[Sized]:
        """Return the items of an epoch, as many as were given, each with a sample of its parts."""


@runtime_checkable
class CountingModel(Protocol):
    """A model whose loss is a mean over parts of items, such as words; else it is over items."""

    def count(self, items: Sequence[Any]) -> int:
        """Count the parts that the loss of a batch is a mean over."""


AnyItem = TypeVar("AnyItem", bound=Sized)
SampleEpoch = Callable[[Sequence[Any], np.random.Generator], Sequence[Any]]

N_BATCHES_SORTED = 32
"""This many batches are sampled at random, sorted by length, and split again."""


class LengthBatches(Generic[AnyItem]):
    """Shuffled batches of items of similar length, the same for the same seed and epoch.

    Of ``world * size`` items that are together every process takes ``size``, so that they are the
    same for any number of processes; a remainder that does not divide is left out.
    ``sample_epoch`` returns the items of an epoch, as many as there are.
    """

    def __init__(
        self,
        items: Sequence[AnyItem],
        size: int,
        *,
        seed: int,
        rank: int = 0,
        world: int = 1,
        sample_epoch: SampleEpoch | None = None,
    ) -> None:
        self._items, self._seed = items, seed
        self._rank, self._world, self._sample_epoch = rank, world, sample_epoch
        self._together = size * world
        if len(items) < world:
            raise ConfigError(f"{len(items)} examples are too few for {world} processes")

    def __len__(self) -> int:
        whole, rest = divmod(len(self._items), self._together)
        return whole + (rest >= self._world)

    def batches(self, epoch: int, position: int = 0) -> Iterator[list[AnyItem]]:
        """Yield the batches of an epoch, starting at a position."""
        return self.every(1, epoch, position)

    def every(self, step: int, epoch: int, position: int) -> Iterator[list[AnyItem]]:
        """Yield every ``step``-th batch of an epoch, starting at a position."""
        rng = np.random.default_rng([self._seed, epoch])
        items = self._of_epoch(epoch)
        lengths = np.fromiter((len(item.tokens) for item in items), np.int64, len(items))
        order = rng.permutation(len(items))
        window = self._together * N_BATCHES_SORTED
        batches = []
        for start in range(0, len(order), window):
            rows = order[start : start + window]
            rows = rows[np.argsort(-lengths[rows], kind="stable")]
            batches += [rows[k : k + self._together] for k in range(0, len(rows), self._together)]
        for index in rng.permutation(len(self))[position::step]:
            n_shared = len(batches[index]) // self._world * self._world
            yield [items[row] for row in batches[index][self._rank : n_shared : self._world]]

    def _of_epoch(self, epoch: int) -> Sequence[AnyItem]:
        """Return the items of an epoch; sampling them does not change the order of batches."""
        if self._sample_epoch is None:
            return self._items
        return self._sample_epoch(self._items, np.random.default_rng([self._seed, epoch, 1]))
