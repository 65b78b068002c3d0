"""What objectives of running text work on: tokenised examples, and batches of them.

Numpy only. An example is one sequence with its special tokens; its mentions are token spans, both
ends inclusive, disjoint and ascending. Batches list the mentions of all sequences one after the
other instead of padding them, so what else is in a batch never changes what one sequence gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from biograft.config import check_choice
from biograft.errors import ConfigError

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


Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class GraphOfEntities:
    """The neighbours of each entity, and how relations see vectors (TransR).

    ``neighbours``, ``relations`` and ``signs`` are (entities, most neighbours), padded at the end.
    """

    neighbours: Ints
    """Rows of the table; -1 is padding."""
    relations: Ints
    """Numbers of relations; -1 is padding."""
    signs: Ints
    """1 where the entity is the head of the triple, -1 where it is the tail, 0 at padding."""
    types: Ints
    """(entities,): numbers of types; -1: none."""
    counts: Ints
    """(entities,): how often each occurs in the text."""
    relation_vectors: Floats
    """(relations, dim of relations)"""
    projections: Floats
    """(relations, dim, dim of relations)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Of the tokenizer, the model and the stream, what an objective is built with."""

    mask: int
    """Number of the token that hides another one."""
    n_tokens: int
    """Size of the vocabulary."""
    special: tuple[int, ...]
    """Tokens that are never drawn at random."""
    width: int
    """Width of the model's states."""
    entity_counts: npt.NDArray[np.int64] | None = None
    """How often each entity of the table occurs in the text, where known."""
    graph: GraphOfEntities | None = None
    """What is known of the entities besides their names, where something is."""
    embeddings: Any = None
    """(tokens, width): the vectors with which tokens went into the model it starts from."""
    shown: str = "hidden"
    """Which mentions the knowledge layer is told the entities of; see ``showing``."""

    @classmethod
    def of(
        cls,
        tokenizer: Any,
        width: int,
        entity_counts: npt.NDArray[np.int64] | None = None,
        **known: Any,
    ) -> Setting:
        """Ask a tokenizer of transformers; ``known`` are fields that it cannot tell."""
        if tokenizer.mask_token_id is None:
            raise ConfigError("encoder: its tokenizer has no mask token; choose another encoder")
        return cls(
            mask=tokenizer.mask_token_id,
            n_tokens=len(tokenizer),
            special=tuple(sorted(tokenizer.all_special_ids)),
            width=width,
            entity_counts=entity_counts,
            **known,
        )


HIDDEN = "hidden"
WAYS = (HIDDEN, "all")
HIDDEN_BY = "masked_tokens"
"""The objective whose label of a token is what it was before it may have been hidden."""


@dataclass(frozen=True, slots=True)
class Showing:
    """Prepares examples for knowledge layers that are told entities, whatever the objectives are.

    It takes its turn after what hides tokens, and before what goes by what mentions are told.
    """

    which: str
    turn: ClassVar[int] = 1

    def prepare(self, example: TextExample, draw: np.random.Generator) -> TextExample:
        """Say which mentions are told their entities."""
        return show(example, self.which)


def show(example: TextExample, which: str) -> TextExample:
    """Say which mentions are told their entities: ``hidden`` ones, or ``all``.

    Hidden is a mention all of whose tokens are foretold by masked_tokens. Those of unknown
    entities are told none.
    """
    check_choice("shown", which, WAYS)
    told = example.mentions[:, 2] >= 0
    if which == HIDDEN:
        told &= _hidden(example)
    labels = np.where(told, example.mentions[:, 2], IGNORED)
    return replace(example, mention_labels={**example.mention_labels, SHOWN: labels})


def _hidden(example: TextExample) -> Bools:
    if HIDDEN_BY not in example.token_labels:
        raise ConfigError(
            f"shown: hidden mentions are to be told their entities, and nothing hides any; add "
            f"objective.{HIDDEN_BY}, or choose all"
        )
    foretold = example.token_labels[HIDDEN_BY] != IGNORED
    n_before = np.concatenate([[0], np.cumsum(foretold)])
    first, end = example.mentions[:, 0], example.mentions[:, 1] + 1
    hidden: Bools = n_before[end] - n_before[first] == end - first
    return hidden
