"""Training examples of name generation, and their batches by similar length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError
from biograft.training.batches import IndependentBatches, group_by_length

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NameExample:
    """A text with a marked mention, the prompt of the decoder, and the name to generate."""

    source: str
    prompt: str
    """Empty without a prompt."""
    target: str


class NameExamples(Protocol):
    """Examples by index; the sampling of one depends on seed, epoch and index alone."""

    def __len__(self) -> int:
        """The number of examples of an epoch."""

    def example(self, epoch: int, index: int) -> NameExample:
        """Return an example as it is in an epoch.

        Args:
            epoch: Number of the epoch.
            index: Index of the example.
        """


Lengths = Callable[[Sequence[NameExample]], Sequence[int]]


@dataclass(frozen=True, slots=True)
class NameBatches(IndependentBatches[tuple[NameExample, ...]]):
    """Batches in a new order each epoch, readable from any epoch and position.

    Of ``world`` processes each reads every ``world``-th example, so that together they see in a
    step what one process with larger batches sees. A remainder is left out of the epoch, so that
    all have equally many batches. The last batch may be smaller.
    """

    examples: NameExamples
    batch_size: int
    _: KW_ONLY
    seed: int
    rank: int = 0
    world: int = 1
    accumulate: int = 1
    """Batches of an update."""
    bucket_batches: int = 0
    """Where above 0: sort by length within so many updates, which saves padding."""
    lengths: Lengths | None = None
    """The lengths of examples; by default their characters."""
    indices: Ints | None = None
    """The examples to read; by default all."""

    def __post_init__(self) -> None:
        if not self._n_own:
            raise ConfigError(
                f"stream: {len(self._indices)} examples are too few for {self.world} processes; "
                "use fewer processes, or more examples"
            )

    @property
    def _indices(self) -> Ints:
        return np.arange(len(self.examples)) if self.indices is None else self.indices

    @property
    def _n_own(self) -> int:
        """The number of examples of an epoch that this process reads."""
        return len(self._indices) // self.world

    def __len__(self) -> int:
        """The number of batches of an epoch for one process."""
        whole, rest = divmod(self._n_own, self.batch_size)
        return whole + (rest > 0)

    def every(self, step: int, epoch: int, position: int) -> Iterator[tuple[NameExample, ...]]:
        """Iterate over every ``step``-th batch of an epoch from a position on.

        Args:
            step: Distance between batches.
            epoch: Number of the epoch.
            position: First batch.
        """
        window = max(1, self.bucket_batches) * self.accumulate
        order, size = self._order(epoch), self.batch_size * window
        for number in range(position // window, -(-len(order) // size)):
            start = number * window
            first = position + max(0, -(-(start - position) // step)) * step - start
            if first < window:
                batches = self._split(order[number * size : (number + 1) * size], epoch, number)
                yield from batches[first::step]

    def _order(self, epoch: int) -> Ints:
        """Shuffle the examples, and take those of this process."""
        order = np.random.default_rng([self.seed, epoch]).permutation(self._indices)
        return order[self.rank : self._n_own * self.world : self.world]

    def _split(self, indices: Ints, epoch: int, window: int) -> list[tuple[NameExample, ...]]:
        """Make the batches of a window, by similar length if ``bucket_batches`` is set."""
        examples = [self.examples.example(epoch, int(index)) for index in indices]
        size, update = self.batch_size, self.batch_size * self.accumulate
        if self.bucket_batches:
            lengths = np.asarray((self.lengths or _count_characters)(examples))
            rng = np.random.default_rng([self.seed, epoch, window, 1])  # without the 1: of order
            rows = group_by_length(
                np.arange(len(examples)), lengths, update, self.bucket_batches, rng
            )
            examples = [examples[row] for row in rows]
        return [tuple(examples[start : start + size]) for start in range(0, len(examples), size)]


def _count_characters(examples: Sequence[NameExample]) -> list[int]:
    return [len(each.source) + len(each.prompt) + len(each.target) for each in examples]
