"""Batches of sequences of like length, in an order that a seed fixes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

import numpy as np

from biograft.errors import ConfigError
from biograft.tasks.network import Item

AnyItem = TypeVar("AnyItem", bound=Item)

N_BATCHES_SORTED = 32
"""So many batches are drawn at random, sorted by length among themselves, and dealt again."""


class LengthBatches(Generic[AnyItem]):
    """Batches shuffled anew each epoch, to be taken up anywhere, with little padding.

    Of several processes each reads its share; what does not divide is left out of the epoch.
    """

    def __init__(
        self, items: Sequence[AnyItem], size: int, *, seed: int, rank: int = 0, world: int = 1
    ) -> None:
        self._items, self._size, self._seed = items, size, seed
        self._rank, self._world = rank, world
        self._lengths = np.fromiter((len(item.tokens) for item in items), np.int64, len(items))
        self._n_own = len(items) // world
        if not self._n_own:
            raise ConfigError(f"{len(items)} examples are too few for {world} processes")

    def __len__(self) -> int:
        return (self._n_own + self._size - 1) // self._size

    def batches(self, epoch: int, position: int = 0) -> Iterator[list[AnyItem]]:
        """Give the batches of an epoch from a position on."""
        draw = np.random.default_rng([self._seed, epoch])
        order = draw.permutation(len(self._items))
        own = order[self._rank : self._n_own * self._world : self._world]
        window = self._size * N_BATCHES_SORTED
        batches = []
        for start in range(0, len(own), window):
            rows = own[start : start + window]
            rows = rows[np.argsort(-self._lengths[rows], kind="stable")]
            batches += [rows[k : k + self._size] for k in range(0, len(rows), self._size)]
        for number in draw.permutation(len(batches))[position:]:
            yield [self._items[row] for row in batches[number]]
