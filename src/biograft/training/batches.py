"""Batches for the training loop: their order, and reading them ahead without end.

Examples are shuffled by seed and epoch, and shared among processes. Worker processes prepare
batches ahead.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from biograft.compute import leave_interrupts_to_parent, n_cores
from biograft.errors import ConfigError
from biograft.linking.candidates import Rows
from biograft.recipe import TrainingConfig
from biograft.training.processes import join_processes

Batch = TypeVar("Batch")
Batch_co = TypeVar("Batch_co", covariant=True)
Placed: TypeAlias = tuple[Batch, int, int]
"""A batch, with the epoch and the position of the next one."""

_AHEAD = 4
"""The batches that a worker prepares ahead."""


class BatchSource(Protocol[Batch_co]):
    """Batches of each epoch in a fixed order, readable from any position; each has a length."""

    def __len__(self) -> int:
        """The number of batches of an epoch."""

    def batches(self, epoch: int, position: int = 0) -> Iterator[Batch_co]:
        """Iterate over the batches of an epoch from a position on.

        Args:
            epoch: Number of the epoch.
            position: First batch.
        """


@runtime_checkable
class IndependentBatches(Protocol[Batch_co]):
    """A source whose batches depend on epoch and position alone, so that workers can share them.

    The candidates of fine-tuning are not independent: they depend on the model in training.
    """

    def __len__(self) -> int:
        """The number of batches of an epoch."""

    def every(self, step: int, epoch: int, position: int) -> Iterator[Batch_co]:
        """Iterate over every ``step``-th batch of an epoch from a position on.

        Args:
            step: Distance between two batches.
            epoch: Number of the epoch.
            position: The first batch.

        Returns:
            The batches of this process.
        """

    def batches(self, epoch: int, position: int = 0) -> Iterator[Batch_co]:
        """Iterate over the batches of an epoch from a position on.

        Args:
            epoch: Number of the epoch.
            position: The first batch.

        Returns:
            The batches of this process.
        """
        return self.every(1, epoch, position)


def endless(
    source: BatchSource[Batch], epoch: int, position: int, workers: int = 0
) -> Iterator[Placed[Batch]]:
    """Iterate over the batches of all epochs from a position on.

    The batches are the same for any number of workers.

    Args:
        source: Batches of an epoch, readable from any position.
        epoch: First epoch.
        position: First batch in it.
        workers: Number of processes that make batches; 0 makes them here.
    """
    if not workers:
        return _in_turn(source, epoch, position)
    if not isinstance(source, IndependentBatches):
        raise ConfigError(
            "training.workers: expected 0, because the batches of this training depend on the "
            f"model, found {workers}"
        )
    if "fork" not in multiprocessing.get_all_start_methods():
        return _in_turn(source, epoch, position)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # tokenizers warn of forks otherwise
    loader: DataLoader[Any] = DataLoader(
        _Stripes(source, epoch, position),
        batch_size=None,
        num_workers=min(workers, n_cores()),
        prefetch_factor=_AHEAD,
        worker_init_fn=_start_worker,
        multiprocessing_context="fork",  # the data is shared, not copied
        generator=torch.Generator(),  # otherwise the loader draws from the generator of dropout
    )
    return iter(loader)


def _in_turn(source: BatchSource[Batch], epoch: int, position: int) -> Iterator[Placed[Batch]]:
    while True:
        for batch in source.batches(epoch, position):
            position += 1
            over = position >= len(source)
            yield batch, epoch + over, 0 if over else position
        epoch, position = epoch + 1, 0


class _Stripes(IterableDataset[Any]):
    """For each of n workers every n-th batch; the loader takes one of each worker in turn."""

    def __init__(self, source: IndependentBatches[Any], epoch: int, position: int) -> None:
        self._source, self._epoch, self._position = source, epoch, position

    def __iter__(self) -> Iterator[Placed[Any]]:
        info = get_worker_info()
        worker, n_workers = (info.id, info.num_workers) if info else (0, 1)
        n_batches, epoch = len(self._source), self._epoch
        position = self._position + worker
        while True:
            epoch, position = epoch + position // n_batches, position % n_batches
            for batch in self._source.every(n_workers, epoch, position):
                over = position + 1 >= n_batches
                yield batch, epoch + over, 0 if over else position + 1
                position += n_workers


def _start_worker(_: int) -> None:
    leave_interrupts_to_parent()


Integer = TypeVar("Integer", bound=np.integer)


def group_by_length(
    order: npt.NDArray[Integer],
    lengths: npt.NDArray[np.integer],
    batch_size: int,
    n_batches: int,
    rng: np.random.Generator,
) -> npt.NDArray[Integer]:
    """Sort by length within windows of so many batches, and shuffle whole batches.

    A smaller last batch stays last.

    Args:
        order: Indices of the examples that are read, in their order.
        lengths: Lengths of all examples.
        batch_size: Examples in a batch.
        n_batches: Batches in a window.
        rng: Shuffles the batches.
    """
    window = np.arange(len(order)) // (batch_size * n_batches)
    order = order[np.lexsort((lengths[order], window))]
    n_whole = len(order) // batch_size
    whole = order[: n_whole * batch_size].reshape(n_whole, batch_size)
    return np.concatenate([rng.permutation(whole).ravel(), order[whole.size :]])


@dataclass(frozen=True, slots=True)
class Shard:
    """The part of every epoch that a process reads: the ``rank``-th of ``world``."""

    rank: int = 0
    world: int = 1


Lengths = npt.NDArray[np.integer] | Callable[[int, Any], Sequence[int]]
"""The length of every example, or a function that measures some examples of an epoch."""


class EpochOrder:
    """Examples shuffled by seed and epoch, and distributed to processes and batches.

    Of consecutive examples of all processes each takes a part, so that an update has the same
    examples for any number of processes and passes. A remainder that does not divide among the
    processes is dropped, so that all have the same number of batches. The last batch may be
    smaller.

    With ``bucket_batches`` above 0 the examples of so many updates are sorted by length, and whole
    updates shuffled, which saves padding. Examples that are made anew each epoch are measured when
    they are due.

    Args:
        examples: The number of examples of an epoch, or their indices.
        batch_size: The number of examples of a batch of one process.
        seed: Decides the order, with the epoch.
        shard: The part of this process.
        accumulate: Batches of an update.
        lengths: The length of each example, to group those of similar length.
        bucket_batches: The number of updates within which they are grouped; 0: none are.
        called: What the examples are, in the words of an error.

    Raises:
        ConfigError: There are fewer examples than processes.
    """

    def __init__(
        self,
        examples: int | Rows,
        batch_size: int,
        seed: int,
        shard: Shard = Shard(),
        *,
        accumulate: int = 1,
        lengths: Lengths | None = None,
        bucket_batches: int = 0,
        called: str = "mentions:",
    ) -> None:
        self.examples = np.arange(examples) if isinstance(examples, int) else examples
        self.batch_size, self.seed, self.shard = batch_size, seed, shard
        self._lengths, self._bucket_batches = lengths, bucket_batches
        self._update = batch_size * shard.world * accumulate
        self._n_own = len(self.examples) // shard.world
        if not self._n_own:
            raise ConfigError(
                f"{called} {len(self.examples)} are too few for {shard.world} processes; use fewer"
            )

    @classmethod
    def for_training(
        cls,
        examples: int | Rows,
        training: TrainingConfig,
        *,
        divisible: bool = True,
        **options: Any,
    ) -> EpochOrder:
        """Return the order for the processes that train together.

        Args:
            examples: The number of examples of an epoch, or their indices.
            training: Seed and size of a batch.
            divisible: Whether a batch may be divided into passes (``Task.divisible``).
            options: Further options of the order.

        Returns:
            The order of this process.
        """
        processes = join_processes()
        shard = Shard(processes.process_index, processes.num_processes)
        plan = training.plan_batch(shard.world, divisible=divisible)
        given = {"accumulate": plan.accumulate, **options}
        return cls(examples, plan.size, training.seed, shard, **given)

    def __len__(self) -> int:
        """Number of batches of an epoch in one process."""
        return (self._n_own + self.batch_size - 1) // self.batch_size

    def batches(self, epoch: int, position: int, step: int = 1) -> Iterator[Rows]:
        """Yield the indices of some batches of this process.

        Args:
            epoch: Number of the epoch.
            position: The first batch.
            step: Distance between two batches.

        Yields:
            The indices of the examples of each batch.
        """
        for indices in self.together(epoch, position, step):
            n_own = len(indices) // self.shard.world
            yield indices[self.shard.rank * n_own : (self.shard.rank + 1) * n_own]

    def together(self, epoch: int, position: int, step: int = 1) -> Iterator[Rows]:
        """Yield the indices of some batches of all processes.

        Args:
            epoch: Number of the epoch.
            position: The first batch.
            step: Distance between two batches.

        Yields:
            The indices of the examples of each batch.
        """
        rng = np.random.default_rng([self.seed, epoch])
        order = rng.permutation(self.examples)
        size, n_updates = self.batch_size * self.shard.world, self._bucket_batches
        lengths: Any = None
        if n_updates and isinstance(self._lengths, np.ndarray):
            order = group_by_length(order, self._lengths, self._update, n_updates, rng)
        elif n_updates:
            lengths = self._lengths
        grouped, window = -1, self._update * n_updates
        for start in range(position * size, len(order), step * size):
            if lengths is not None and grouped != start // window:
                grouped = start // window
                some = order[grouped * window : (grouped + 1) * window]
                rng = np.random.default_rng([self.seed, epoch, grouped, 1])  # without 1: examples
                measured = np.asarray(lengths(epoch, some))
                rows = np.arange(len(some))
                rows = group_by_length(rows, measured, self._update, n_updates, rng)
                order[grouped * window : (grouped + 1) * window] = some[rows]
            together = order[start : start + size]
            if n_shared := len(together) // self.shard.world * self.shard.world:
                yield together[:n_shared]


class OrderedBatches(IndependentBatches[Batch]):
    """Batches made of the indices of an order; they can resume at any epoch and position.

    Args:
        order: Order of the examples in each epoch.
        make: Makes a batch of an epoch from the indices of its examples.
        together: Whether each process reads the batches of all processes.
    """

    def __init__(
        self,
        order: EpochOrder,
        make: Callable[[int, list[int]], Batch],
        *,
        together: bool = False,
    ) -> None:
        self.order, self._make = order, make
        self._read = order.together if together else order.batches

    def __len__(self) -> int:
        return len(self.order)

    def every(self, step: int, epoch: int, position: int) -> Iterator[Batch]:
        """Yield every ``step``-th batch of an epoch.

        Args:
            step: Distance between two batches.
            epoch: Number of the epoch.
            position: The first batch.

        Yields:
            The batches of this process.
        """
        for indices in self._read(epoch, position, step):
            yield self._make(epoch, indices.tolist())
