"""Text with mentions of concepts: what readers of corpora give and what linkers work on.

Offsets count characters of the unaltered text, the end exclusive, so that
``document.text[mention.start:mention.end] == mention.text`` for a mention without gaps.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mention:
    """A stretch of text that speaks of concepts.

    ``concepts`` are the gold ids as written, empty where none is known (NIL); several ids that
    are meant together (a composite mention) stand side by side.
    """

    start: int
    end: int
    text: str
    concepts: tuple[str, ...] = ()
    type: str = ""
    pieces: tuple[tuple[int, int], ...] = ()
    """Of a mention with gaps, its pieces, ascending; ``start`` and ``end`` are then the outer
    bounds, and ``text`` is the pieces joined by one blank."""
    parts: tuple[str, ...] = ()
    """Of a composite mention, its single mentions as the file writes them."""
    id: str = ""
    """The file's own name for the mention."""

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """The pieces, or the one piece of a mention without gaps."""
        return self.pieces or ((self.start, self.end),)


@dataclass(frozen=True, slots=True)
class Relation:
    """Something said of several mentions (``of`` is "mentions") or "concepts" of a document."""

    type: str
    arguments: tuple[tuple[str, str], ...]
    """(role, id) of each; the id is that of a mention or of a concept."""
    id: str = ""
    of: str = "mentions"


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of the text that its file sets apart, such as the title."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class Document:
    """A text, its mentions, and what is said of them."""

    id: str
    text: str
    mentions: tuple[Mention, ...] = ()
    language: str = ""
    relations: tuple[Relation, ...] = ()
    passages: tuple[Passage, ...] = ()
