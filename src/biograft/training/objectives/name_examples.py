"""Training examples of name generation, and their batches by similar length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

Batch = TypeVar("Batch")


@dataclass(frozen=True, slots=True)
class NameExample:
    """A text with a marked mention, the prompt of the decoder, and the name to generate."""

    source: str
    """Text that the encoder reads."""
    prompt: str
    """Empty without a prompt."""
    target: str
    """Name to generate."""


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


class NameBatches(Generic[Batch]):
    """Makes and measures batches of examples; what is measured is not made again.

    Args:
        examples: Examples by epoch and index.
        encode: Makes a batch of examples.
        measure: Measures examples; by default their characters.
    """

    def __init__(
        self,
        examples: NameExamples,
        encode: Callable[[Sequence[NameExample]], Batch],
        measure: Callable[[Sequence[NameExample]], Sequence[int]] | None = None,
    ) -> None:
        self._examples, self._encode = examples, encode
        self._measure = measure or _count_characters
        self._made: dict[tuple[int, int], NameExample] = {}

    def __len__(self) -> int:
        return len(self._examples)

    def batch(self, epoch: int, indices: Sequence[int]) -> Batch:
        """Make a batch of some examples as they are in an epoch.

        Args:
            epoch: Number of the epoch.
            indices: Indices of the examples.
        """
        made = [self._made.get((epoch, index)) for index in indices]
        return self._encode(
            [
                each or self._examples.example(epoch, int(index))
                for each, index in zip(made, indices, strict=True)
            ]
        )

    def lengths(self, epoch: int, indices: Sequence[int]) -> Sequence[int]:
        """Measure some examples as they are in an epoch.

        Args:
            epoch: Number of the epoch.
            indices: Indices of the examples.
        """
        self._made = {(epoch, int(i)): self._examples.example(epoch, int(i)) for i in indices}
        return self._measure([*self._made.values()])


def _count_characters(examples: Sequence[NameExample]) -> list[int]:
    return [len(each.source) + len(each.prompt) + len(each.target) for each in examples]
