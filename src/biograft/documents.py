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


@dataclass(frozen=True, slots=True)
class Document:
    """A text and its mentions."""

    id: str
    text: str
    mentions: tuple[Mention, ...] = ()
    language: str = ""
