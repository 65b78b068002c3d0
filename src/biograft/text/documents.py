"""Documents: text with mentions of concepts, as corpus readers yield and linkers take them.

Offsets count characters of the unaltered text; the end is exclusive. Hence
``document.text[mention.start:mention.end] == mention.text`` for a mention without gaps.
"""

from __future__ import annotations

from dataclasses import dataclass

from biograft.display import Shown, highlighted, stretches


@dataclass(frozen=True, slots=True, repr=False)
class Mention(Shown):
    """A span of text that refers to concepts.

    ``concepts`` are the gold ids as written, empty for NIL; a composite mention has
    several.
    """

    start: int
    end: int
    text: str
    concepts: tuple[str, ...] = ()
    type: str = ""
    fragments: tuple[tuple[int, int], ...] = ()
    """The spans of a discontinuous mention, ascending; ``start`` and ``end`` are then the outer
    bounds, and ``text`` is the fragments joined by one space."""
    parts: tuple[str, ...] = ()
    """The single mentions of a composite mention, as the file writes them."""
    id: str = ""
    """The identifier of the mention in its file."""
    attributes: tuple[tuple[str, str], ...] = ()
    """Attributes, name to value, as the status "absent"; an empty value where only
    the name counts."""

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """The fragments, or the one span of a continuous mention."""
        return self.fragments or ((self.start, self.end),)


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation between mentions (``of`` is "mentions") or between "concepts" of a document."""

    type: str
    arguments: tuple[tuple[str, str], ...]
    """(role, id) of each argument; the id is that of a mention or of a concept."""
    id: str = ""
    of: str = "mentions"


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of the text that its file marks, such as the title."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True, repr=False)
class Document(Shown):
    """A text with its mentions and relations."""

    id: str
    """Id of the document."""
    text: str
    """Its text, which the offsets refer to."""
    mentions: tuple[Mention, ...] = ()
    """Annotated mentions."""
    language: str = ""
    """``en`` or ``zh``; empty: decided by the script."""
    relations: tuple[Relation, ...] = ()
    """Annotated relations of mentions."""
    passages: tuple[Passage, ...] = ()
    """Parts such as title and abstract."""

    def _repr_html_(self) -> str:
        marks = [
            (start, end, found[0].type or "-", "", "; ".join(map(repr, found)))
            for start, end, found in stretches(self.mentions)
        ]
        return highlighted(self.text, marks)
