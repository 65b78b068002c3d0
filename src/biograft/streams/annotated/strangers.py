"""The second part of a sequence exchanged for one of another document."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from biograft.objectives.records import FOLLOWS, HEAD_START, IGNORED, SPECIAL, Ints, TextExample
from biograft.streams.annotated.packed import PackedText

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
