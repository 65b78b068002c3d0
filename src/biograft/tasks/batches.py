"""Batches of sequences of like length, in an order that a seed fixes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from biograft.errors import ConfigError


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
