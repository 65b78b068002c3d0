"""What objectives of running text work on: tokenised examples, and batches of them.

Numpy only. An example is one sequence with its special tokens; its mentions are token spans, both
ends inclusive, disjoint and ascending. Batches list the mentions of all sequences one after the
other instead of padding them, so what else is in a batch never changes what one sequence gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

IGNORED = -100
"""The label of a token, mention or sequence that says nothing about a loss."""
SPECIAL = -1
"""Number of the word, or of the sentence, of a token that belongs to none."""
FOLLOWS = "follows"
"""The label of a sequence of two segments: 1 if the second follows the first in its text, 0 if it
is of another document. Streams that exchange segments set it."""
CONSISTENT = "consistent"
"""The label of a mention: 1 if it was replaced by a synonym, 0 if by another entity; ``IGNORED``
where it stands as it was written."""
HEAD_START = "head_start"
"""The label of a long mention: the first token of its head, as a place in the sequence. The head
goes to the mention's end, and the adjective part, never empty, is before it. ``IGNORED`` where
the mention is short, or its head is not its end."""
SHOWN = "shown"
"""The label of a mention: the row of the entity that the knowledge layer is told it means;
``IGNORED`` where it is told none. Without the label every mention is told its own."""
PIECE_ENDS = "piece_ends"
"""The label of a token: 1 if it is the last one of a sub-entity of a long mention, 0 if another of
the mention; ``IGNORED`` elsewhere."""


@dataclass(frozen=True, slots=True)
class TextExample:
    """One sequence of tokens, and what is known about it."""

    tokens: Ints
    """Numbers in the vocabulary, special tokens included."""
    segments: Ints
    """Which segment each token belongs to (``token_type_ids``)."""
    words: Ints
    """Number of the word of each token, ascending; ``SPECIAL`` for special tokens."""
    mentions: Ints
    """First token, last token, row of the entity (-1: none of the table), of each mention."""
    token_labels: Mapping[str, Ints] = field(default_factory=dict)
    """By name, a label for each token."""
    mention_labels: Mapping[str, Ints] = field(default_factory=dict)
    """By name, a label for each mention."""
    labels: Mapping[str, int] = field(default_factory=dict)
    """By name, a label of the sequence."""
    fixed: Bools | None = None
    """Tokens that an objective has hidden or needs as they are; those after it leave them alone.
    Not given: none."""

    def fixed_with(self, rows: Iterable[int]) -> Bools:
        """Give ``fixed``, and with it the tokens of these mentions."""
        fixed = np.zeros(len(self.tokens), bool) if self.fixed is None else self.fixed.copy()
        for first, last in self.mentions[list(rows), :2]:
            fixed[first : last + 1] = True
        return fixed


@dataclass(frozen=True, slots=True)
class TextBatch:
    """Sequences padded to the longest, and their mentions in one list."""

    tokens: Ints
    """(sequences, length)"""
    mask: Ints
    """1 where there is a token, 0 at padding."""
    segments: Ints
    mentions: Ints
    """(mentions, 3): sequence, first token, last token."""
    entities: Ints
    """(mentions,): rows of the table, -1 where unknown."""
    token_labels: Mapping[str, Ints]
    """(sequences, length), ``IGNORED`` at padding."""
    mention_labels: Mapping[str, Ints]
    """(mentions,)"""
    labels: Mapping[str, Ints]
    """(sequences,)"""

    def __len__(self) -> int:
        return len(self.tokens)


class Preparing(Protocol):
    """The part of an objective that works on examples: it may change tokens and add labels.

    An objective that must come before or after others says so by a number, ``turn``: those with a
    lower one are asked first. Without it, it is 0.
    """

    def prepare(self, example: TextExample, draw: np.random.Generator) -> TextExample:
        """Give the example as this objective wants it; ``draw`` depends on the example alone."""


def collate(examples: Sequence[TextExample], padding: int) -> TextBatch:
    """Put examples together; all must have the same labels."""
    longest = max(len(example.tokens) for example in examples)
    counts = [len(example.mentions) for example in examples]
    mentions = np.concatenate([example.mentions for example in examples])
    sequence = np.repeat(np.arange(len(examples)), counts)
    first = examples[0]
    return TextBatch(
        tokens=_pad([example.tokens for example in examples], longest, padding),
        mask=_pad([np.ones_like(example.tokens) for example in examples], longest, 0),
        segments=_pad([example.segments for example in examples], longest, 0),
        mentions=np.column_stack([sequence, mentions[:, :2]]),
        entities=mentions[:, 2],
        token_labels={
            name: _pad([example.token_labels[name] for example in examples], longest, IGNORED)
            for name in first.token_labels
        },
        mention_labels={
            name: np.concatenate([example.mention_labels[name] for example in examples])
            for name in first.mention_labels
        },
        labels={
            name: np.array([example.labels[name] for example in examples], np.int64)
            for name in first.labels
        },
    )


def _pad(rows: Sequence[Ints], length: int, value: int) -> Ints:
    padded = np.full((len(rows), length), value, np.int64)
    for row, values in enumerate(rows):
        padded[row, : len(values)] = values
    return padded
