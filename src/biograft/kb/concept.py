"""What the store gives back: a concept and the facts about it, as plain frozen objects."""

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
    """A semantic type: its code, what it is called, and its place among types."""

    code: str
    label: str = ""
    tree: str = ""


@dataclass(frozen=True, slots=True)
class Identifier:
    """A further id of a concept."""

    id: str
    kind: str


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation between two concepts, by their ids and names."""

    head: str
    relation: str
    tail: str
    source: str
    head_name: str = ""
    tail_name: str = ""


@dataclass(frozen=True, slots=True)
class Concept:
    """A concept with all that the store knows about it but its relations."""

    id: str
    name: str
    names: tuple[Name, ...] = ()
    definitions: tuple[Definition, ...] = ()
    types: tuple[SemanticType, ...] = ()
    ids: tuple[Identifier, ...] = ()

    @property
    def definition(self) -> str:
        """The first definition, or nothing."""
        return self.definitions[0].text if self.definitions else ""

    def to_json(self) -> dict[str, Any]:
        """Give the concept as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Match:
    """A name that answers a query, and how it was found."""

    concept: str
    concept_name: str
    name: str
    language: str
    how: str
    """``exact``, ``normalised``, ``prefix`` or ``words``."""

    def to_json(self) -> dict[str, Any]:
        """Give the match as plain values."""
        return asdict(self)
