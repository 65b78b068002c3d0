"""Batches of sequences of like length, in an order that a seed fixes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from torch import Tensor, nn

from biograft.errors import ConfigError
from biograft.tasks.network import TaskNetwork


class Sized(Protocol):
    """What is as long as a sequence: one, or several of which it gives the longest."""

    @property
    def tokens(self) -> Sequence[int]:
        """Numbers in the vocabulary, special tokens included."""


AnyItem = TypeVar("AnyItem", bound=Sized)
Choose = Callable[[Sequence[Any], np.random.Generator], Sequence[Any]]

N_BATCHES_SORTED = 32
"""So many batches are drawn at random, sorted by length among themselves, and dealt again."""


class LengthBatches(Generic[AnyItem]):
    """Batches shuffled anew each epoch, to be taken up anywhere, with little padding.

    Of several processes each reads its share; what does not divide is left out of the epoch.
    ``choose`` gives for each epoch as many items, each with a choice of what it holds.
    """

    def __init__(
        self,
        items: Sequence[AnyItem],
        size: int,
        *,
        seed: int,
        rank: int = 0,
        world: int = 1,
        choose: Choose | None = None,
    ) -> None:
        self._items, self._size, self._seed = items, size, seed
        self._rank, self._world, self._choose = rank, world, choose
        self._n_own = len(items) // world
        if not self._n_own:
            raise ConfigError(f"{len(items)} examples are too few for {world} processes")

    def __len__(self) -> int:
        return (self._n_own + self._size - 1) // self._size

    def batches(self, epoch: int, position: int = 0) -> Iterator[list[AnyItem]]:
        """Give the batches of an epoch from a position on."""
        draw = np.random.default_rng([self._seed, epoch])
        items = self._of_epoch(epoch)
        lengths = np.fromiter((len(item.tokens) for item in items), np.int64, len(items))
        order = draw.permutation(len(items))
        own = order[self._rank : self._n_own * self._world : self._world]
        window = self._size * N_BATCHES_SORTED
        batches = []
        for start in range(0, len(own), window):
            rows = own[start : start + window]
            rows = rows[np.argsort(-lengths[rows], kind="stable")]
            batches += [rows[k : k + self._size] for k in range(0, len(rows), self._size)]
        for number in draw.permutation(len(batches))[position:]:
            yield [items[row] for row in batches[number]]

    def _of_epoch(self, epoch: int) -> Sequence[AnyItem]:
        """Give the items of an epoch; what is chosen leaves the order of batches as it is."""
        if self._choose is None:
            return self._items
        return self._choose(self._items, np.random.default_rng([self._seed, epoch, 1]))


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
