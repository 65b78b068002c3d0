"""Batches of examples of like length, of which less is padded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError

Number = TypeVar("Number", bound=np.integer)


def put_like_lengths_together(
    order: npt.NDArray[Number],
    lengths: npt.NDArray[np.integer],
    batch_size: int,
    n_batches: int,
    draw: np.random.Generator,
) -> npt.NDArray[Number]:
    """Sort within so many batches by length, and shuffle whole batches; a smaller one stays last.

    ``lengths`` are those of all examples, ``order`` the numbers of those that are read.
    """
    window = np.arange(len(order)) // (batch_size * n_batches)
    order = order[np.lexsort((lengths[order], window))]
    n_whole = len(order) // batch_size
    whole = order[: n_whole * batch_size].reshape(n_whole, batch_size)
    return np.concatenate([draw.permutation(whole).ravel(), order[whole.size :]])


Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NamingExample:
    """A text with a marked mention, what the decoder is given, and the name it is to give."""

    source: str
    prompt: str
    """Empty where the decoder is given nothing."""
    target: str


class NamingExamples(Protocol):
    """Examples by number; what is drawn for one depends on seed, epoch and number alone."""

    def __len__(self) -> int:
        """How many examples an epoch has."""

    def example(self, epoch: int, number: int) -> NamingExample:
        """Give an example as it is in an epoch."""


Lengths = Callable[[Sequence[NamingExample]], Sequence[int]]


@dataclass(frozen=True, slots=True)
class NamingBatches:
    """Batches in an order anew each epoch, to be taken up at any epoch and position.

    Of ``world`` processes each reads every ``world``-th example, so that together they see in a
    step what one with larger batches sees; what does not divide is left out of the epoch, so that
    all have equally many batches. The last batch may be smaller.
    """

    examples: NamingExamples
    batch_size: int
    _: KW_ONLY
    seed: int
    rank: int = 0
    world: int = 1
    bucket_batches: int = 0
    """Where above 0: sort within so many batches by length, so that less is padded."""
    lengths: Lengths | None = None
    """How long examples are, if not as many as their letters."""
    numbers: Numbers | None = None
    """The examples to read, if not all."""

    def __post_init__(self) -> None:
        if not self._n_own:
            raise ConfigError(
                f"stream: {len(self._numbers)} examples are too few for {self.world} processes; "
                "use fewer, or give more"
            )

    @property
    def _numbers(self) -> Numbers:
        return np.arange(len(self.examples)) if self.numbers is None else self.numbers

    @property
    def _n_own(self) -> int:
        """How many examples of an epoch this process reads."""
        return len(self._numbers) // self.world

    def __len__(self) -> int:
        """How many batches an epoch has for one process."""
        whole, rest = divmod(self._n_own, self.batch_size)
        return whole + (rest > 0)

    def batches(self, epoch: int, position: int = 0) -> Iterator[tuple[NamingExample, ...]]:
        """Give the batches of an epoch from a position on."""
        window = max(1, self.bucket_batches)
        order, size = self._order(epoch), self.batch_size * window
        first = position // window
        for place in range(first, -(-len(order) // size)):
            numbers = order[place * size : (place + 1) * size]
            of_window = self._split(numbers, epoch, place)
            yield from of_window[position - place * window if place == first else 0 :]

    def _order(self, epoch: int) -> Numbers:
        """Shuffle the examples, and take those of this process."""
        order = np.random.default_rng([self.seed, epoch]).permutation(self._numbers)
        return order[self.rank : self._n_own * self.world : self.world]

    def _split(self, numbers: Numbers, epoch: int, place: int) -> list[tuple[NamingExample, ...]]:
        """Make the batches of a window, of like length each where that is asked for."""
        examples = [self.examples.example(epoch, int(number)) for number in numbers]
        size = self.batch_size
        if self.bucket_batches:
            lengths = np.asarray((self.lengths or _count_letters)(examples))
            draw = np.random.default_rng([self.seed, epoch, place, 1])  # without it: the order's
            rows = put_like_lengths_together(
                np.arange(len(examples)), lengths, size, self.bucket_batches, draw
            )
            examples = [examples[row] for row in rows]
        return [tuple(examples[start : start + size]) for start in range(0, len(examples), size)]


def _count_letters(examples: Sequence[NamingExample]) -> list[int]:
    return [len(each.source) + len(each.prompt) + len(each.target) for each in examples]
