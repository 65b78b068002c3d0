"""The order of training examples: shuffled by seed and epoch, shared among processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic

import numpy as np

from biograft.errors import ConfigError
from biograft.linking.candidates import Rows
from biograft.recipe import TrainingConfig
from biograft.training.prefetch import Batch
from biograft.training.processes import join_processes


@dataclass(frozen=True, slots=True)
class Shard:
    """The part of every epoch that a process reads: the ``rank``-th of ``world``."""

    rank: int = 0
    world: int = 1


class EpochOrder:
    """Examples shuffled by seed and epoch, and distributed to processes and batches.

    A remainder that does not divide among the processes is dropped, so that all have the same
    number of batches. The last batch may be smaller.
    """

    def __init__(self, n_examples: int, batch_size: int, seed: int, shard: Shard) -> None:
        self.n_examples, self.batch_size, self.seed = n_examples, batch_size, seed
        self.shard = shard
        self._n_own = n_examples // shard.world
        if not self._n_own:
            raise ConfigError(
                f"mentions: {n_examples} are too few for {shard.world} processes; use fewer"
            )

    @classmethod
    def for_training(cls, n_examples: int, training: TrainingConfig) -> EpochOrder:
        """Return the order for the processes that train together.

        Args:
            n_examples: The number of examples of an epoch.
            training: Seed and size of a batch.

        Returns:
            The order of this process.
        """
        processes = join_processes()
        shard = Shard(processes.process_index, processes.num_processes)
        return cls(n_examples, training.plan_batch(shard.world).size, training.seed, shard)

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
            yield indices[self.shard.rank :: self.shard.world]

    def together(self, epoch: int, position: int, step: int = 1) -> Iterator[Rows]:
        """Yield the indices of some batches of all processes.

        Args:
            epoch: Number of the epoch.
            position: The first batch.
            step: Distance between two batches.

        Yields:
            The indices of the examples of each batch.
        """
        order = np.random.default_rng([self.seed, epoch]).permutation(self.n_examples)
        order = order[: self._n_own * self.shard.world]
        size = self.batch_size * self.shard.world
        for start in range(position * size, len(order), step * size):
            yield order[start : start + size]


class OrderedBatches(Generic[Batch]):
    """Batches made of the indices of an order; they can resume at any epoch and position."""

    def __init__(self, order: EpochOrder, make: Callable[[int, list[int]], Batch]) -> None:
        """``make`` takes an epoch and the indices of examples."""
        self.order, self._make = order, make

    def __len__(self) -> int:
        return len(self.order)

    def batches(self, epoch: int, position: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch.

        Args:
            epoch: Number of the epoch.
            position: The first batch.

        Yields:
            The batches of this process.
        """
        return self.every(1, epoch, position)

    def every(self, step: int, epoch: int, position: int) -> Iterator[Batch]:
        """Yield every ``step``-th batch of an epoch.

        Args:
            step: Distance between two batches.
            epoch: Number of the epoch.
            position: The first batch.

        Yields:
            The batches of this process.
        """
        for indices in self.order.batches(epoch, position, step):
            yield self._make(epoch, indices.tolist())
