"""The records that pass from the readers of sources to the store.

A reader describes a knowledge base as a stream of small facts, each about one concept, in any
order. ``line`` is where the fact stands in its file (from 1; 0 where the format has no lines),
so that whoever rejects it later can name the place. ``source`` is the vocabulary within the
file (``MSH`` within UMLS); empty means the file's own name.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, TypeAlias


class NameKind(StrEnum):
    """Kind of a name."""

    PREFERRED = "preferred"
    SYNONYM = "synonym"
    BROAD = "broad"
    NARROW = "narrow"
    RELATED = "related"
    ABBREVIATION = "abbreviation"


class IdKind(StrEnum):
    """Kind of an identifier."""

    PRIMARY = "primary"
    ALTERNATE = "alternate"
    XREF = "xref"
    REPLACED = "replaced"
    """The id of a retired concept that this one replaces."""
    CONSIDER = "consider"
    """The id of a retired concept in whose place this one may be meant."""


RETIRED = (IdKind.REPLACED, IdKind.CONSIDER)
"""Kinds of ids of retired concepts."""

IS_A = "is-a"
"""The one relation the store itself understands: head is a kind of tail."""


@dataclass(frozen=True, slots=True)
class ConceptRecord:
    """A concept exists."""

    table: ClassVar[str] = "concepts"
    concept: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class NameRecord:
    """A concept has a name."""

    table: ClassVar[str] = "names"
    concept: str
    text: str
    language: str = "en"
    kind: str = NameKind.SYNONYM
    source: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class DefinitionRecord:
    """A concept has a definition."""

    table: ClassVar[str] = "definitions"
    concept: str
    text: str
    language: str = "en"
    source: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class TypeRecord:
    """A concept has a semantic type; ``tree`` places the type in a hierarchy of types."""

    table: ClassVar[str] = "types"
    concept: str
    type: str
    label: str = ""
    tree: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class IdRecord:
    """A concept has a further identifier."""

    table: ClassVar[str] = "ids"
    concept: str
    id: str
    kind: str = IdKind.ALTERNATE
    line: int = 0


@dataclass(frozen=True, slots=True)
class RelationRecord:
    """A typed, directed relation holds between two concepts."""

    table: ClassVar[str] = "relations"
    head: str
    relation: str
    tail: str
    source: str = ""
    line: int = 0


Record: TypeAlias = (
    ConceptRecord | NameRecord | DefinitionRecord | TypeRecord | IdRecord | RelationRecord
)

RECORD_TYPES: tuple[type[Record], ...] = (
    ConceptRecord,
    NameRecord,
    DefinitionRecord,
    TypeRecord,
    IdRecord,
    RelationRecord,
)
