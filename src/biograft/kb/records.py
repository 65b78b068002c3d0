"""The records that pass from the readers of sources to the store.

A reader describes a knowledge base as a stream of small facts, each about one concept, in any
order. ``line`` is where the fact stands in its file (from 1; 0 where the format has no lines),
so that a later rejection can name the place. ``source`` is the vocabulary within the
file (``MSH`` within UMLS); empty means the file's own name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
CLASSES = ("Standard", "Classification")
"""Types of concepts of OMOP, beside their domains."""
MAPS_TO, MAPS_TO_VALUE = "Maps to", "Maps to value"
"""Relationships of OMOP to standard concepts, and to the values that complete them."""
REPLACED_BY = ("Concept replaced by", "Concept same_as to")
"""Relationships of a concept that is not valid any more to the one that means the same."""


@dataclass(frozen=True, slots=True)
class ConceptRecord:
    """A concept exists."""

    table: ClassVar[str] = "concepts"
    concept: str
    """Id of the concept."""
    line: int = 0
    """Line of the source, from 1; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class NameRecord:
    """A concept has a name."""

    table: ClassVar[str] = "names"
    concept: str
    """Id of the concept."""
    text: str
    """The name."""
    language: str = "en"
    """Code of its language."""
    kind: str = NameKind.SYNONYM
    """Kind of name (``NameKind``)."""
    source: str = ""
    """Vocabulary of the name; empty: that of the file."""
    line: int = 0
    """Line of the source, from 1; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class DefinitionRecord:
    """A concept has a definition."""

    table: ClassVar[str] = "definitions"
    concept: str
    """Id of the concept."""
    text: str
    """The definition."""
    language: str = "en"
    """Code of its language."""
    source: str = ""
    """Vocabulary of the definition; empty: that of the file."""
    line: int = 0
    """Line of the source, from 1; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class TypeRecord:
    """A concept has a semantic type; ``tree`` places the type in a hierarchy of types."""

    table: ClassVar[str] = "types"
    concept: str
    """Id of the concept."""
    type: str
    """Id of the type."""
    label: str = ""
    """Name of the type."""
    tree: str = ""
    line: int = 0
    """Line of the source, from 1; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class IdRecord:
    """A concept has a further identifier."""

    table: ClassVar[str] = "ids"
    concept: str
    """Id of the concept."""
    id: str
    """The further id."""
    kind: str = IdKind.ALTERNATE
    """Kind of id (``IdKind``)."""
    line: int = 0
    """Line of the source, from 1; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class RelationRecord:
    """A typed, directed relation holds between two concepts."""

    table: ClassVar[str] = "relations"
    head: str
    """Id of the concept that the relation starts from."""
    relation: str
    """Name of the relation."""
    tail: str
    """Id of the concept that it leads to."""
    source: str = ""
    """Vocabulary of the relation; empty: that of the file."""
    line: int = 0
    """Line of the source, from 1; 0 if unknown."""


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


@dataclass(frozen=True, slots=True)
class Facts:
    """Makes the records of one concept that one line of a file gives.

    >>> flu = Facts("D007251", line=7)
    >>> flu.id("MESH:D007251").line
    7
    """

    concept: str
    """Id of the concept."""
    line: int = 0
    """Line of the source, from 1; 0 if unknown."""
    language: str = "en"
    """Language of names and definitions that have no other."""

    def exists(self) -> ConceptRecord:
        """Return the record that the concept exists."""
        return ConceptRecord(self.concept, self.line)

    def name(
        self, text: str, kind: str = NameKind.SYNONYM, language: str = "", source: str = ""
    ) -> NameRecord:
        """Return the record of a name.

        Args:
            text: The name.
            kind: Its kind.
            language: Its language, if it is another.
            source: Its vocabulary.
        """
        return NameRecord(self.concept, text, language or self.language, kind, source, self.line)

    def names(self, texts: Iterable[str], *, is_new: bool = True) -> Iterator[NameRecord]:
        """Yield the records of names; the first is the preferred name of a concept that is new.

        Args:
            texts: The names.
            is_new: Whether the concept was not described before.
        """
        kind = NameKind.PREFERRED if is_new else NameKind.SYNONYM
        for text in texts:
            yield self.name(text, kind)
            kind = NameKind.SYNONYM

    def definition(self, text: str, language: str = "", source: str = "") -> DefinitionRecord:
        """Return the record of a definition.

        Args:
            text: The definition.
            language: Its language, if it is another.
            source: Its vocabulary.
        """
        return DefinitionRecord(self.concept, text, language or self.language, source, self.line)

    def type(self, code: str, label: str = "", tree: str = "") -> TypeRecord:
        """Return the record of a semantic type.

        Args:
            code: Its code.
            label: Its label.
            tree: Its place in a hierarchy of types.
        """
        return TypeRecord(self.concept, code, label, tree, self.line)

    def id(self, identifier: str, kind: str = IdKind.ALTERNATE) -> IdRecord:
        """Return the record of a further id.

        Args:
            identifier: The id.
            kind: Its kind.
        """
        return IdRecord(self.concept, identifier, kind, self.line)

    def relation(self, relation: str, tail: str, source: str = "") -> RelationRecord:
        """Return the record of a relation to another concept.

        Args:
            relation: Name of the relation.
            tail: The other concept.
            source: Its vocabulary.
        """
        return RelationRecord(self.concept, relation, tail, source, self.line)
