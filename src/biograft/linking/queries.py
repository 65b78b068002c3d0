"""Queries of a linker: mentions to be linked, in their context, with or without gold concepts.

:class:`Query` and :class:`GoldQuery` are protocols: evaluation and training bring their own
records. :func:`label_examples` makes gold queries of documents, or of (mention, concept) pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from biograft.documents import Document
from biograft.errors import ConfigError


class Query(Protocol):
    """A mention to be linked: the texts to look up, and their context."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The texts to look up; several for a composite mention."""

    @property
    def document(self) -> str:
        """Id of the document; one document is never on both sides of a training split."""

    @property
    def context(self) -> str:
        """The whole text of the document; empty if unknown."""

    @property
    def start(self) -> int | None:
        """Start offset of the mention in ``context``."""

    @property
    def end(self) -> int | None:
        """End offset of the mention in ``context``."""


class GoldQuery(Query, Protocol):
    """A mention whose concepts are known."""

    @property
    def gold(self) -> frozenset[str]:
        """All correct concept ids; empty means NIL."""

    @property
    def needed(self) -> tuple[frozenset[str], ...]:
        """The correct ids in groups, one group for each concept of a composite mention."""


class Context(NamedTuple):
    """The text around a mention and its offsets there; empty if unknown."""

    text: str = ""
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class LabelledMention:
    """The text of a mention without its context, and the ids of its correct concepts."""

    text: str
    concepts: frozenset[str]
    document: str = ""
    """Id of its document; mentions of one document are never on both sides of a split."""


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """A gold query made of a labelled example."""

    parts: tuple[str, ...]
    gold: frozenset[str]
    needed: tuple[frozenset[str], ...] = ()
    document: str = ""
    context: str = ""
    start: int | None = None
    end: int | None = None


def label_examples(examples: Iterable[Document | tuple[str, str]]) -> list[LabelledQuery]:
    """Make gold queries of documents with gold concepts, or of (mention, concept id) pairs.

    >>> label_examples([("heart attack", "D009203")])[0].gold
    frozenset({'D009203'})
    """
    return [query for row, example in enumerate(examples) for query in _label(example, row)]


def _label(example: Document | tuple[str, str], row: int) -> Iterator[LabelledQuery]:
    if isinstance(example, Document):
        for mention in example.mentions:
            yield LabelledQuery(
                parts=mention.parts or (mention.text,),
                gold=frozenset(mention.concepts),
                needed=tuple(frozenset({concept}) for concept in mention.concepts),
                document=example.id or f"document {row}",
                context=example.text,
                start=mention.start,
                end=mention.end,
            )
        return
    match example:
        case (str(text), str(concept)):
            gold = frozenset({concept})
            yield LabelledQuery(parts=(text,), gold=gold, needed=(gold,))
        case _:
            raise ConfigError(
                f"examples: row {row}: expected a Document or a pair of a mention and a concept "
                f"id, found {example!r}"
            )
