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

from biograft.arrays import Flags, Float32s, Ints
from biograft.config import check_choice
from biograft.errors import ConfigError

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
WITHHELD_NEIGHBOURS = "withheld_neighbours"
"""A mention label of (mentions, neighbours): 1 for the neighbours of a mention's entity that an
objective predicts and the knowledge layers do not receive, else 0. Without the label they receive
all."""
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
    """By name, a label for each mention, or several: (mentions,) or (mentions, values)."""
    labels: Mapping[str, int] = field(default_factory=dict)
    """By name, a label of the sequence."""
    fixed: Flags | None = None
    """Tokens that an objective has masked or needs unchanged; later objectives leave them alone.
    None: no token."""

    def fixed_with(self, rows: Iterable[int]) -> Flags:
        """Return ``fixed`` extended by the tokens of these mentions."""
        fixed = np.zeros(len(self.tokens), bool) if self.fixed is None else self.fixed.copy()
        for first, last in self.mentions[list(rows), :2]:
            fixed[first : last + 1] = True
        return fixed


def splice(parts: Sequence[tuple[TextExample, int, int]], second: int) -> TextExample:
    """Join spans of tokens of examples with the same labels; mentions that are cut are dropped.

    Args:
        parts: Examples, each with the start and the end of a span, end exclusive.
        second: Where the second segment of the result starts.
    """
    spans = [slice(start, stop) for _, start, stop in parts]
    kept = [
        (each.mentions[:, 0] >= start) & (each.mentions[:, 1] < stop) for each, start, stop in parts
    ]

    def join(selected: Sequence[Any], field: str, name: str = "") -> Any:
        values = [getattr(each, field) for each, _, _ in parts]
        named = [each[name] for each in values] if name else values
        return np.concatenate([each[some] for each, some in zip(named, selected, strict=True)])

    first, words = parts[0][0], join(spans, "words")
    begins = (words != SPECIAL) & np.append(True, words[1:] != words[:-1])
    sizes = [span.stop - span.start for span in spans]
    shifts = np.cumsum([0, *sizes[:-1]]) - [span.start for span in spans]
    moves = np.repeat(shifts, [int(some.sum()) for some in kept])
    return TextExample(
        tokens=join(spans, "tokens"),
        segments=(np.arange(len(words)) >= second).astype(np.int64),
        words=np.where(words == SPECIAL, SPECIAL, np.cumsum(begins) - 1),
        mentions=join(kept, "mentions") + moves[:, None] * [1, 1, 0],
        token_labels={name: join(spans, "token_labels", name) for name in first.token_labels},
        mention_labels={name: join(kept, "mention_labels", name) for name in first.mention_labels},
        labels=first.labels,
        fixed=None if first.fixed is None else join(spans, "fixed"),
    )


@dataclass(frozen=True, slots=True)
class TextBatch:
    """Sequences padded to the longest, and their mentions in one list."""

    tokens: Ints
    """(sequences, length)"""
    mask: Ints
    """1 where there is a token, 0 at padding."""
    segments: Ints
    """Segment of each token, 0 or 1."""
    mentions: Ints
    """(mentions, 3): sequence, first token, last token."""
    entities: Ints
    """(mentions,): rows of the table, -1 where unknown."""
    token_labels: Mapping[str, Ints]
    """(sequences, length), ``IGNORED`` at padding."""
    mention_labels: Mapping[str, Ints]
    """(mentions,) or (mentions, values)"""
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
    """Make a batch of examples; all must have the same labels.

    Args:
        examples: Examples with the same labels.
        padding: Id of the padding token.
    """
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
    relation_vectors: Float32s
    """(relations, dim of relations)"""
    projections: Float32s
    """(relations, dim, dim of relations)"""


MIXED, MASKED, ALL = "mixed", "masked", "all"
ENTITY_VISIBILITIES = (MIXED, MASKED, ALL)
MASKING_OBJECTIVE = "masked_tokens"
"""The objective whose token label is the original token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The properties of tokenizer, model and stream that objectives are built with.

    All know the width and the knowledge base; the rest is of running text, or of generation.
    """

    width: int
    """Width of the model's states."""
    kb: Any = None
    """The knowledge base whose rows the examples hold, where there is one: names, definitions,
    types, hierarchy and relations."""
    mask: int = 0
    """Id of the mask token."""
    n_tokens: int = 0
    """Size of the vocabulary."""
    special: tuple[int, ...] = ()
    """Tokens that are never sampled at random."""
    entity_counts: Ints | None = None
    """The frequency of each entity of the table in the text, where known."""
    graph: EntityGraph | None = None
    """The neighbours of the entities, where a knowledge layer reads them."""
    embeddings: Any = None
    """(tokens, width): the input embeddings of the model that training starts from."""
    entity_visibility: str = MIXED
    """Mentions whose entities the knowledge layers receive; see ``EntityVisibility``."""
    encoder: Any = None
    """The encoder that training starts from, if it has no knowledge layers."""
    first: int = 0
    """Id of the token that begins a text."""
    separator: int = 0
    """Id of the token that ends a text."""
    entities: tuple[str, ...] = ()
    """The ids of the entities of the table, in the order of its rows."""
    trie: Any = None
    """The trie of the names that may be generated, where one limits them."""

    @classmethod
    def of(
        cls,
        tokenizer: Any,
        width: int,
        entity_counts: Ints | None = None,
        **fields: Any,
    ) -> Setting:
        """Read a tokenizer of transformers.

        Args:
            tokenizer: The tokenizer, which must have a mask token.
            width: Width of the model.
            entity_counts: Frequency of each entity in the text.
            fields: Fields that the tokenizer does not determine.
        """
        if tokenizer.mask_token_id is None:
            raise ConfigError("encoder: its tokenizer has no mask token; choose another encoder")
        return cls(
            mask=tokenizer.mask_token_id,
            n_tokens=len(tokenizer),
            special=tuple(sorted(tokenizer.all_special_ids)),
            width=width,
            entity_counts=entity_counts,
            first=tokenizer.cls_token_id,
            separator=tokenizer.sep_token_id,
            **fields,
        )


@dataclass(frozen=True, slots=True)
class EntityVisibility:
    """Labels the mentions whose entities the knowledge layers receive, for any objectives.

    It runs after masking, and before objectives that depend on the visible entities.
    """

    visibility: str
    """Mentions whose entities are visible."""
    neighbours: Ints | None = None
    """(entities, neighbours): the neighbours of each entity, -1 is padding, where an objective
    predicts them."""
    order: ClassVar[int] = 1

    def prepare(self, example: TextExample, rng: np.random.Generator) -> TextExample:
        """Add the label ``VISIBLE_ENTITIES``, and ``WITHHELD_NEIGHBOURS`` where some are."""
        return set_visible_entities(example, self.visibility, rng, self.neighbours)


def set_visible_entities(
    example: TextExample,
    visibility: str,
    rng: np.random.Generator,
    neighbours: Ints | None = None,
) -> TextExample:
    """Label which entities the knowledge layers receive.

    Unknown entities are never visible.

    Args:
        example: The example.
        visibility: ``masked``: entities of mentions that masked_tokens predicts whole; ``all``:
            those of all mentions; ``mixed``: those of masked mentions and of half the others. With
            ``mixed`` all other mentions of an entity with a masked mention are visible too.
        rng: Random numbers.
        neighbours: Neighbours of each entity; with ``mixed``, half of them are withheld from all
            its mentions: what is predicted is nowhere in the sequence.
    """
    check_choice("entity_visibility", visibility, ENTITY_VISIBILITIES)
    labels, entities = dict(example.mention_labels), example.mentions[:, 2]
    visible = entities >= 0
    if visibility == MASKED:
        visible &= _masked_mentions(example)
    elif visibility == MIXED:
        distinct, number = np.unique(entities[visible], return_inverse=True)
        received = rng.random(len(distinct)) < _VISIBLE_RATIO
        received[number[_masked_mentions(example)[visible]]] = True
        if neighbours is not None:
            withheld = np.zeros((len(entities), neighbours.shape[1]), np.int64)
            chosen = _choose_neighbours(neighbours[distinct], rng) * received[:, None]
            withheld[visible] = chosen[number]
            labels[WITHHELD_NEIGHBOURS] = withheld
        visible[visible] = received[number]
    labels[VISIBLE_ENTITIES] = np.where(visible, entities, IGNORED)
    return replace(example, mention_labels=labels)


_VISIBLE_RATIO = 0.5
"""The ratio of entities without a masked mention that are visible in ``mixed``."""
_WITHHELD_RATIO = 0.5


def _choose_neighbours(neighbours: Ints, rng: np.random.Generator) -> Ints:
    """Choose neighbours (entities, n) at random; one joined by two relations once for both."""
    chosen = rng.random(neighbours.shape) < _WITHHELD_RATIO
    first_same = (neighbours[:, :, None] == neighbours[:, None, :]).argmax(2)
    withheld = np.take_along_axis(chosen, first_same, axis=1) & (neighbours >= 0)
    return withheld.astype(np.int64)


def _masked_mentions(example: TextExample) -> Flags:
    if MASKING_OBJECTIVE not in example.token_labels:
        raise ConfigError(
            "entity_visibility: expected a recipe that masks mentions, found none; add "
            f"objective.{MASKING_OBJECTIVE}, or set knowledge.entity_visibility to all"
        )
    spans = np.insert(example.mentions[:, :2], 0, 0, axis=1)
    masked: Flags = masked_mentions(example.token_labels[MASKING_OBJECTIVE][None], spans)
    return masked


def masked_mentions(labels: Any, mentions: Any) -> Any:
    """Whether masked_tokens predicts all tokens of each mention, for arrays as for tensors.

    Args:
        labels: Labels of masked_tokens: (sequences, length).
        mentions: Sequence, first token and last token of each: (mentions, 3).
    """
    predicted = (labels != IGNORED).reshape(-1)
    n_until = predicted.cumsum(0)
    start = mentions[:, 0] * labels.shape[1]
    first, last = start + mentions[:, 1], start + mentions[:, 2]
    return n_until[last] - n_until[first] + predicted[first] == last - first + 1
