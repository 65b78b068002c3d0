"""Batches of packed text: any epoch from any position, the same for any number of processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from biograft.errors import ConfigError
from biograft.objectives.records import Ints, Preparing, TextBatch, TextExample, collate
from biograft.streams.annotated.packed import PackedText
from biograft.streams.annotated.strangers import pair_segments
from biograft.streams.bucketing import put_like_lengths_together


@dataclass(frozen=True, slots=True)
class TextBatches:
    """Sequences in an order anew each epoch, prepared by the objectives, in their order.

    Of each update's ``world * batch_size`` sequences every process takes ``batch_size`` that
    follow each other, so that together they see what one with a batch of that size sees, or one
    that accumulates ``world`` batches. The last update of an epoch may have fewer; what does not
    divide there is left out. What is drawn for a sequence depends on seed, epoch and its number.

    Where ``bucket_batches`` is above 0, so many updates' sequences are sorted by length, and whole
    updates shuffled: less is padded. Which sequences meet then depends on an update's size.
    """

    packed: PackedText
    batch_size: int
    prepare: Sequence[Preparing] = ()
    seed: int = 33
    strangers: float = 0.0
    bucket_batches: int = 0
    rank: int = 0
    world: int = 1
    numbers: Ints | None = None
    """The sequences to read, strangers among them; all of them if not given."""

    def __post_init__(self) -> None:
        if not len(self):
            raise ConfigError(
                f"stream: {len(self._numbers)} sequences are too few for {self.world} processes; "
                "use fewer, or more text"
            )

    @property
    def _numbers(self) -> Ints:
        return np.arange(len(self.packed)) if self.numbers is None else self.numbers

    def __len__(self) -> int:
        """How many batches an epoch has for one process."""
        whole, rest = divmod(len(self._numbers), self.batch_size * self.world)
        return whole + (rest >= self.world)

    def batches(self, epoch: int, position: int = 0) -> Iterator[TextBatch]:
        """Give the batches of an epoch from a position on."""
        draw, together = np.random.default_rng([self.seed, epoch]), self.batch_size * self.world
        order = draw.permutation(self._numbers)
        if self.bucket_batches:
            order = put_like_lengths_together(
                order, self.packed.lengths, together, self.bucket_batches, draw
            )
        for start in range(position * together, len(order), together):
            of_update = order[start : start + together]
            each = len(of_update) // self.world
            own = of_update[self.rank * each : (self.rank + 1) * each]
            if each:
                yield self.batch(own, epoch)

    def batch(self, numbers: Ints, epoch: int = 0) -> TextBatch:
        """Give a batch of chosen sequences as they are in an epoch."""
        examples = [self.example(int(number), epoch) for number in numbers]
        return collate(examples, self.packed.padding)

    def example(self, number: int, epoch: int) -> TextExample:
        """Give a sequence as it is in an epoch, whatever else is in its batch."""
        draw = np.random.default_rng([self.seed, epoch, 1 + number])  # 0 is the order's
        if self.strangers:
            example = pair_segments(self.packed, number, self._numbers, self.strangers, draw)
        else:
            example = self.packed.example(number)
        for objective in self.prepare:
            example = objective.prepare(example, draw)
        return example
