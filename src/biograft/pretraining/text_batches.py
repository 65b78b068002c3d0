"""The second part of a sequence exchanged for one of another document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from biograft.errors import ConfigError
from biograft.objectives.examples import (
    FOLLOWS,
    HEAD_START,
    IGNORED,
    SPECIAL,
    Ints,
    Preparing,
    TextBatch,
    TextExample,
    collate,
)
from biograft.objectives.name_examples import put_like_lengths_together
from biograft.pretraining.packed_text import PackedText

_TRIES = 16
"""How often a sequence of another document is looked for."""


def pair_segments(
    packed: PackedText, number: int, others: Ints, share: float, draw: np.random.Generator
) -> TextExample:
    """Give a sequence; in this share of cases its second part is one of another document.

    That is taken from ``others``, so that what is held out is not read by way of strangers.
    """
    example, documents = packed.example(number), packed.documents
    if draw.random() < share:
        for other in others[draw.integers(len(others), size=_TRIES)]:
            if documents[other] != documents[number]:
                joined = join_stranger(example, packed.example(int(other)), packed.max_length)
                return replace(joined, labels={**joined.labels, FOLLOWS: 0})
    return replace(example, labels={**example.labels, FOLLOWS: 1})


def join_stranger(example: TextExample, other: TextExample, max_length: int) -> TextExample:
    """Put the second part of another sequence behind the first part of this one.

    What is too long loses whole words at its end; a mention of which something is lost is no
    mention any more.
    """
    own, start = _second(example), _second(other)
    stop = _fitting_end(other, start, max_length - own - 1)
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
            name: np.concatenate(
                [labels[stays], _moved(name, other.mention_labels[name][inside], own - start)]
            )
            for name, labels in example.mention_labels.items()
        },
    )


def _moved(name: str, labels: Ints, by: int) -> Ints:
    """Move those labels of mentions that are places."""
    return np.where(labels == IGNORED, IGNORED, labels + by) if name == HEAD_START else labels


def _second(example: TextExample) -> int:
    return int(np.argmax(example.segments == 1))


def _fitting_end(example: TextExample, start: int, room: int) -> int:
    """Give where at most ``room`` tokens from ``start`` end, if possible between words."""
    end = len(example.tokens) - 1  # the separator stands apart
    if end - start <= room:
        return end
    words: Ints = example.words
    places = np.arange(start + 1, start + room + 1)
    between = places[words[places] != words[places - 1]]
    return int(between[-1]) if len(between) else start + room


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
