"""Batches of synonym pairs, shuffled anew each epoch, the same for the same seed and epoch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError
from biograft.streams.bucketing import put_like_lengths_together
from biograft.streams.pair_table import Ints
from biograft.streams.synonym_pairs import SynonymPairs


@dataclass(frozen=True, slots=True)
class PairBatch:
    """Pairs of names; ``left[k]`` and ``right[k]`` name the concept ``labels[k]``."""

    left: tuple[str, ...]
    right: tuple[str, ...]
    labels: Ints

    def __len__(self) -> int:
        return len(self.left)


class PairBatches:
    """Batches that can be taken up at any epoch and position.

    Of ``world`` processes each reads every ``world``-th pair; what does not divide is left out of
    the epoch, so that all have equally many batches. The last batch may be smaller.
    """

    def __init__(
        self,
        pairs: SynonymPairs,
        batch_size: int,
        *,
        seed: int = 33,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self.pairs, self.batch_size, self.seed = pairs, batch_size, seed
        self.rank, self.world = rank, world
        self._n_own = len(pairs) // world
        if not self._n_own:
            raise ConfigError(
                f"stream: {len(pairs)} pairs are too few for {world} processes; use fewer"
            )
        self._lengths = pairs.lengths() if pairs.config.bucket_batches else None

    def __len__(self) -> int:
        """How many batches an epoch has for one process."""
        return (self._n_own + self.batch_size - 1) // self.batch_size

    def batches(self, epoch: int, position: int = 0) -> Iterator[PairBatch]:
        """Give the batches of an epoch from a position on."""
        order = self._order(epoch)
        for start in range(position * self.batch_size, len(order), self.batch_size):
            yield self._batch(order[start : start + self.batch_size])

    def _order(self, epoch: int) -> npt.NDArray[np.int32]:
        """Shuffle the pairs of this process; where wanted, by length within some batches."""
        rng = np.random.default_rng([self.seed, epoch])
        order = np.arange(len(self.pairs), dtype=np.int32)
        rng.shuffle(order)
        order = order[self.rank : self._n_own * self.world : self.world]
        if self._lengths is None:
            return order
        return put_like_lengths_together(
            order, self._lengths, self.batch_size, self.pairs.config.bucket_batches, rng
        )

    def _batch(self, places: npt.NDArray[np.int32]) -> PairBatch:
        rows = self.pairs.rows[places].tolist()
        return PairBatch(
            left=tuple(self.pairs.text(left) for left, _ in rows),
            right=tuple(self.pairs.text(right) for _, right in rows),
            labels=self.pairs.labels[places],
        )
