"""Tokenised examples of running text and their batches, the input of objectives (numpy only).

An example is one sequence with its special tokens; its mentions are token spans, both ends
inclusive, disjoint and ascending. Batches list the mentions of all sequences one after the other
without padding, so the result for one sequence does not depend on the rest of its batch.
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
Floats = npt.NDArray[np.float32]

IGNORED = -100
"""The label of a token, mention or sequence that no loss counts."""
SPECIAL = -1
"""The word index, or sentence index, of a token that belongs to none."""
FOLLOWS = "follows"
"""A sequence label of two-segment sequences: 1 if the second segment follows the first in its
text, 0 if it is from another document. Streams with random next segments set it."""
CONSISTENT = "consistent"
"""A mention label: 1 if the mention was replaced by a synonym, 0 if by another entity; ``IGNORED``
where it is unchanged."""
HEAD_OFFSET = "head_offset"
"""A mention label of long mentions: how many tokens precede the head. The head reaches to the end
of the mention; the adjective part before it is never empty. ``IGNORED`` for short mentions, and
where the head does not end the mention."""
VISIBLE_ENTITIES = "visible_entities"
"""A mention label: the row of the entity that the knowledge layers receive for the mention;
``IGNORED`` where they receive none. Without the label they receive every mention's own entity."""
SEGMENT_ENDS = "segment_ends"
"""A token label: 1 for the last token of a segment (sub-entity) of a long mention, 0 for its other
tokens; ``IGNORED`` elsewhere."""


@dataclass(frozen=True, slots=True)
class TextExample:
    """One sequence of tokens with its mentions and labels."""

    tokens: Ints
    """Token ids, special tokens included."""
    segments: Ints
    """The segment of each token (``token_type_ids``)."""
    words: Ints
    """The word index of each token, ascending; ``SPECIAL`` for special tokens."""
    mentions: Ints
    """First token, last token, row of the entity (-1: not in the table), of each mention."""
    token_labels: Mapping[str, Ints] = field(default_factory=dict)
    """By name, a label for each token."""
    mention_labels: Mapping[str, Ints] = field(default_factory=dict)
    """By name, a label for each mention."""
    labels: Mapping[str, int] = field(default_factory=dict)
    """By name, a label of the sequence."""
    fixed: Bools | None = None
    """Tokens that an objective has masked or needs unchanged; later objectives leave them alone.
    None: no token."""

    def fixed_with(self, rows: Iterable[int]) -> Bools:
        """Return ``fixed`` extended by the tokens of these mentions."""
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


class ExampleTransform(Protocol):
    """A step that changes tokens of examples or adds labels: an objective or ``EntityVisibility``.

    Steps run by ascending ``order``.
    """

    order: ClassVar[int]

    def prepare(self, example: TextExample, rng: np.random.Generator) -> TextExample:
        """Return the changed example; ``rng`` depends on the example alone."""


def sort_by_order(transforms: Iterable[ExampleTransform]) -> tuple[ExampleTransform, ...]:
    """Sort transforms by their ``order``; equal ones keep their sequence."""
    return tuple(sorted(transforms, key=lambda transform: transform.order))


def collate(examples: Sequence[TextExample], padding: int) -> TextBatch:
    """Make a batch of examples; all must have the same labels."""
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


@dataclass(frozen=True, slots=True)
class EntityGraph:
    """The neighbours of each entity of a table, and the relation projections of TransR.

    ``neighbours``, ``relations`` and ``signs`` are (entities, max neighbours), padded at the end.
    """

    neighbours: Ints
    """Rows of the table; -1 is padding."""
    relations: Ints
    """Relation indices; -1 is padding."""
    signs: Ints
    """1 where the entity is the head of the triple, -1 where it is the tail, 0 at padding."""
    types: Ints
    """(entities,): type indices; -1: no type."""
    counts: Ints
    """(entities,): the frequency of each entity in the text."""
    relation_vectors: Floats
    """(relations, dim of relations)"""
    projections: Floats
    """(relations, dim, dim of relations)"""


MASKED, ALL = "masked", "all"
ENTITY_VISIBILITIES = (MASKED, ALL)
MASKING_OBJECTIVE = "masked_tokens"
"""The objective whose token label is the original token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The properties of tokenizer, model and stream that objectives are built with."""

    mask: int
    """Id of the mask token."""
    n_tokens: int
    """Size of the vocabulary."""
    special: tuple[int, ...]
    """Tokens that are never sampled at random."""
    width: int
    """Width of the model's states."""
    entity_counts: npt.NDArray[np.int64] | None = None
    """The frequency of each entity of the table in the text, where known."""
    graph: EntityGraph | None = None
    """The neighbours of the entities, where a knowledge layer reads them."""
    embeddings: Any = None
    """(tokens, width): the input embeddings of the model that training starts from."""
    entity_visibility: str = MASKED
    """Which mentions the knowledge layers receive the entities of; see ``EntityVisibility``."""

    @classmethod
    def of(
        cls,
        tokenizer: Any,
        width: int,
        entity_counts: npt.NDArray[np.int64] | None = None,
        **fields: Any,
    ) -> Setting:
        """Read a tokenizer of transformers; ``fields`` are those that it does not determine."""
        if tokenizer.mask_token_id is None:
            raise ConfigError("encoder: its tokenizer has no mask token; choose another encoder")
        return cls(
            mask=tokenizer.mask_token_id,
            n_tokens=len(tokenizer),
            special=tuple(sorted(tokenizer.all_special_ids)),
            width=width,
            entity_counts=entity_counts,
            **fields,
        )


@dataclass(frozen=True, slots=True)
class EntityVisibility:
    """Labels the mentions whose entities the knowledge layers receive, for any objectives.

    It runs after masking, and before objectives that depend on the visible entities.
    """

    visibility: str
    order: ClassVar[int] = 1

    def prepare(self, example: TextExample, rng: np.random.Generator) -> TextExample:
        """Add the label ``VISIBLE_ENTITIES``."""
        return set_visible_entities(example, self.visibility)


def set_visible_entities(example: TextExample, visibility: str) -> TextExample:
    """Label which entities the knowledge layers receive: those of ``masked`` mentions, or ``all``.

    A mention is masked if masked_tokens predicts all of its tokens. Unknown entities are never
    visible.
    """
    check_choice("entity_visibility", visibility, ENTITY_VISIBILITIES)
    visible = example.mentions[:, 2] >= 0
    if visibility == MASKED:
        visible &= _masked_mentions(example)
    labels = np.where(visible, example.mentions[:, 2], IGNORED)
    return replace(example, mention_labels={**example.mention_labels, VISIBLE_ENTITIES: labels})


def _masked_mentions(example: TextExample) -> Bools:
    if MASKING_OBJECTIVE not in example.token_labels:
        raise ConfigError(
            "entity_visibility: expected a recipe that masks mentions, found none; add "
            f"objective.{MASKING_OBJECTIVE}, or set knowledge.entity_visibility to all"
        )
    predicted = example.token_labels[MASKING_OBJECTIVE] != IGNORED
    n_before = np.concatenate([[0], np.cumsum(predicted)])
    first, end = example.mentions[:, 0], example.mentions[:, 1] + 1
    masked: Bools = n_before[end] - n_before[first] == end - first
    return masked
