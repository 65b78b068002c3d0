"""Records of a knowledge base: concepts with their names and ids, relations, matches."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Name:
    """A name of a concept."""

    text: str
    language: str
    kind: str
    source: str


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition of a concept."""

    text: str
    language: str
    source: str


@dataclass(frozen=True, slots=True)
class SemanticType:
    """A semantic type: its code, label and tree number in the hierarchy of types."""

    code: str
    label: str = ""
    tree: str = ""


@dataclass(frozen=True, slots=True)
class Identifier:
    """An additional id of a concept: an alternate id, a cross-reference, or that of a retired one.

    ``kind`` is one of ``biograft.kb.records.IdKind``.
    """

    id: str
    kind: str


@dataclass(frozen=True, slots=True)
class Replacement:
    """Successors of a retired id, as its source states: ids of concepts in the store."""

    id: str
    replaced_by: tuple[str, ...] = ()
    """One as a rule; the concept that means the same."""
    consider: tuple[str, ...] = ()
    """Concepts that may be meant instead; a person has to choose."""

    def __str__(self) -> str:
        named = (("replaced by", self.replaced_by), ("consider", self.consider))
        return f"{self.id} is retired: " + "; ".join(
            f"{how} {', '.join(ids)}" for how, ids in named if ids
        )

    def to_json(self) -> dict[str, Any]:
        """Return the replacement as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ConceptRelation:
    """A relation between two concepts, by their ids and names."""

    head: str
    relation: str
    tail: str
    source: str
    head_name: str = ""
    tail_name: str = ""


@dataclass(frozen=True, slots=True)
class RelationCount:
    """Count of a concept's relations as head (``out``) or as tail (``in``)."""

    relation: str
    direction: str
    n: int


@dataclass(frozen=True, slots=True)
class Concept:
    """A concept with its names, definitions, types and ids; relations are looked up apart."""

    id: str
    name: str
    names: tuple[Name, ...] = ()
    definitions: tuple[Definition, ...] = ()
    types: tuple[SemanticType, ...] = ()
    ids: tuple[Identifier, ...] = ()

    @property
    def definition(self) -> str:
        """The first definition, or an empty text."""
        return self.definitions[0].text if self.definitions else ""

    def to_json(self) -> dict[str, Any]:
        """Return the concept as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Match:
    """A name that matches a query, and how it matches."""

    concept: str
    concept_name: str
    name: str
    language: str
    how: str
    """``exact``, ``normalised``, ``prefix`` or ``words``."""

    def to_json(self) -> dict[str, Any]:
        """Return the match as plain values."""
        return asdict(self)
