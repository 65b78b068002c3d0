"""Batches of packed text, with random next segments and the labels of objectives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from biograft.errors import ConfigError
from biograft.training.objectives.examples import (
    FOLLOWS,
    IGNORED,
    SPECIAL,
    ExampleTransform,
    Ints,
    TextBatch,
    TextExample,
    collate,
)
from biograft.training.objectives.name_examples import group_by_length
from biograft.training.pretraining.packed_text import PackedText

_TRIES = 16
"""The attempts to sample a sequence of another document."""


def with_next_segment(
    packed: PackedText, index: int, others: Ints, probability: float, rng: np.random.Generator
) -> TextExample:
    """Return a sequence, with this probability with a random next segment of another document.

    It is sampled from ``others``, so that held-out sequences do not leak into training.
    """
    example, documents = packed.example(index), packed.documents
    if rng.random() < probability:
        for other in others[rng.integers(len(others), size=_TRIES)]:
            if documents[other] != documents[index]:
                joined = join_random_next(example, packed.example(int(other)), packed.max_length)
                return replace(joined, labels={**joined.labels, FOLLOWS: 0})
    return replace(example, labels={**example.labels, FOLLOWS: 1})


def join_random_next(example: TextExample, other: TextExample, max_length: int) -> TextExample:
    """Join the first segment of a sequence and the second one of another.

    A segment that is too long loses whole words at its end; a mention that is cut is dropped.
    """
    own, start = _second(example), _second(other)
    stop = _truncated_end(other, start, max_length - own - 1)
    inside = (other.mentions[:, 0] >= start) & (other.mentions[:, 1] < stop)
    moved = other.mentions[inside] + [own - start, own - start, 0]
    stays = example.mentions[:, 1] < own
    words = other.words[start:stop]
    n_words = example.words[:own].max() + 1
    return TextExample(
        tokens=np.concatenate([example.tokens[:own], other.tokens[start:stop], other.tokens[-1:]]),
        segments=np.repeat([0, 1], [own, stop - start + 1]),
        words=np.concatenate([example.words[:own], words - words[0] + n_words, [SPECIAL]]),
        mentions=np.concatenate([example.mentions[stays], moved]),
        token_labels={
            name: np.concatenate([labels[:own], other.token_labels[name][start:stop], [IGNORED]])
            for name, labels in example.token_labels.items()
        },
        mention_labels={
            name: np.concatenate([labels[stays], other.mention_labels[name][inside]])
            for name, labels in example.mention_labels.items()
        },
    )


def _second(example: TextExample) -> int:
    return int(np.argmax(example.segments == 1))


def _truncated_end(example: TextExample, start: int, room: int) -> int:
    """Find the end of at most ``room`` tokens from ``start``, if possible between words."""
    end = len(example.tokens) - 1  # without the separator
    if end - start <= room:
        return end
    words: Ints = example.words
    positions = np.arange(start + 1, start + room + 1)
    between = positions[words[positions] != words[positions - 1]]
    return int(between[-1]) if len(between) else start + room


@dataclass(frozen=True, slots=True)
class TextBatches:
    """Batches in a new order each epoch, with examples transformed by ``transforms``.

    Of ``world * batch_size`` consecutive sequences every process takes ``batch_size``. An update
    reads ``accumulate`` such groups, so that it has the same sequences for any number of processes
    and passes. The last group of an epoch may have fewer; a remainder is left out. The sampling for
    a sequence depends on seed, epoch and its index.

    With ``bucket_batches`` above 0, the sequences of so many updates are sorted by length, and
    whole updates shuffled, which saves padding. The sequences of a batch then depend on the size of
    an update.
    """

    packed: PackedText
    batch_size: int
    transforms: Sequence[ExampleTransform] = ()
    seed: int = 33
    random_next_probability: float = 0.0
    accumulate: int = 1
    bucket_batches: int = 0
    rank: int = 0
    world: int = 1
    indices: Ints | None = None
    """The sequences to read, also as random next segments; by default all."""

    def __post_init__(self) -> None:
        if not len(self):
            raise ConfigError(
                f"stream: {len(self._indices)} sequences are too few for {self.world} processes; "
                "use fewer, or more text"
            )

    @property
    def _indices(self) -> Ints:
        return np.arange(len(self.packed)) if self.indices is None else self.indices

    def __len__(self) -> int:
        """The number of batches of an epoch for one process."""
        whole, rest = divmod(len(self._indices), self.batch_size * self.world)
        return whole + (rest >= self.world)

    def batches(self, epoch: int, position: int = 0) -> Iterator[TextBatch]:
        """Iterate over the batches of an epoch from a position on."""
        return self.every(1, epoch, position)

    def every(self, step: int, epoch: int, position: int) -> Iterator[TextBatch]:
        """Iterate over every ``step``-th batch of an epoch from a position on."""
        rng, n_together = np.random.default_rng([self.seed, epoch]), self.batch_size * self.world
        order = rng.permutation(self._indices)
        if self.bucket_batches:
            update = n_together * self.accumulate
            order = group_by_length(order, self.packed.lengths, update, self.bucket_batches, rng)
        for start in range(position * n_together, len(order), step * n_together):
            group = order[start : start + n_together]
            n_own = len(group) // self.world
            own = group[self.rank * n_own : (self.rank + 1) * n_own]
            if n_own:
                yield self.batch(own, epoch)

    def batch(self, indices: Ints, epoch: int = 0) -> TextBatch:
        """Return a batch of these sequences, as they are in an epoch."""
        examples = [self.example(int(index), epoch) for index in indices]
        return collate(examples, self.packed.padding)

    def example(self, index: int, epoch: int) -> TextExample:
        """Return a sequence as it is in an epoch, independently of its batch."""
        rng = np.random.default_rng([self.seed, epoch, 1 + index])  # 0 is for the order
        if self.random_next_probability:
            example = with_next_segment(
                self.packed, index, self._indices, self.random_next_probability, rng
            )
        else:
            example = self.packed.example(index)
        for transform in self.transforms:
            example = transform.prepare(example, rng)
        return example
