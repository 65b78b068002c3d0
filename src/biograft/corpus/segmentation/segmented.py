"""What segmentation gives of an entity: its sub-entities, and its two halves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from biograft.corpus.segmentation.units import Unit

Span = tuple[int, int]
NOTHING: Span = (0, 0)


@dataclass(frozen=True, slots=True)
class Segmented:
    """An entity in pieces; a short one has one piece, its head.

    Pieces ascend and do not overlap; between them stand signs and blanks alone.
    """

    text: str
    pieces: tuple[Span, ...]
    adjective: Span
    """What modifies the head; ``(0, 0)`` in a short entity."""
    head: Span
    """The atomic part, the core of the entity."""

    @property
    def is_long(self) -> bool:
        """Whether there is anything besides the head."""
        return self.adjective != NOTHING

    def cut(self, span: Span) -> str:
        """Give the text of a piece, the adjective part or the head."""
        return self.text[span[0] : span[1]]


def whole(text: str) -> Segmented:
    """Give a short entity, which is one piece."""
    return Segmented(text, ((0, len(text)),) if text else (), NOTHING, (0, len(text)))


def span_of(units: Sequence[Unit]) -> Span:
    """Say where neighbouring units stand."""
    return units[0].start, units[-1].end
