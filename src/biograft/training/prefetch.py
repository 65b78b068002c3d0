"""Batches for the training loop, in order and without end; worker processes prepare them ahead."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from biograft.compute import leave_interrupts_to_parent, n_cores
from biograft.errors import ConfigError

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
        """Iterate over the batches of an epoch from a position on."""


@runtime_checkable
class IndependentBatches(Protocol[Batch_co]):
    """A source whose batches depend on epoch and position alone, so that workers can share them.

    The candidates of fine-tuning are not independent: they depend on the model in training.
    """

    def __len__(self) -> int:
        """The number of batches of an epoch."""

    def every(self, step: int, epoch: int, position: int) -> Iterator[Batch_co]:
        """Iterate over every ``step``-th batch of an epoch from a position on."""


def endless(
    source: BatchSource[Batch], epoch: int, position: int, workers: int = 0
) -> Iterator[Placed[Batch]]:
    """Iterate over the batches of all epochs from a position on.

    The batches are the same for any number of ``workers``.
    """
    if not workers:
        return _in_turn(source, epoch, position)
    if not isinstance(source, IndependentBatches):
        raise ConfigError(
            "training.workers: expected 0, because the batches of this training depend on the "
            f"model, found {workers}"
        )
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
