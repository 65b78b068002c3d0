"""Changes: one difference between two releases of an ontology, or of a value set."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

COLUMNS = ("change", "id", "name", "old", "new", "language", "evidence")
"""Columns of a table of changes."""


_EVIDENCE = {
    "alternate": "by alternate id",
    "replaced": "named as its successor",
    "xref": "by cross-reference",
}
_ARROW = {"name-added": "+", "name-removed": "-"}


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two stores.

    ``id`` and ``name`` are those of the new store, or of the old one if the concept is gone.
    ``old`` and ``new`` hold what was lost and gained: names, ids of parents, codes of types. For a
    concept that another took over, ``new`` holds the id of that one, for another that is gone those
    that the new store says to consider; for a new concept, ``old`` holds the id of the concept that
    had its id as an alternate one.
    """

    change: str
    """Kind of the change."""
    id: str
    name: str
    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    language: str = ""
    """Language of the names; empty where it does not matter."""
    evidence: str = ""
    """By which kind of id the other concept was found (``biograft.kb.records.IdKind``)."""

    def to_json(self) -> dict[str, Any]:
        """Return the change as plain values, without empty ones."""
        return {key: value for key, value in asdict(self).items() if value}

    def to_tsv(self) -> str:
        """Return the change as a line of a TSV file; several values are separated by ``|``."""
        cells = (getattr(self, column) for column in COLUMNS)
        texts = (cell if isinstance(cell, str) else "|".join(cell) for cell in cells)
        return "\t".join(" ".join(text.split()) for text in texts)

    def __str__(self) -> str:
        first = f"{self.id} {self.name}"
        if self.change in _ARROW:
            (text,) = self.old or self.new
            return f"{first}: {_ARROW[self.change]} {text} ({self.language})"
        if self.change == "renamed":
            return f"{self.id} {self.old[0]} -> {self.name}"
        if self.change in ("merged", "replaced"):
            return f"{first} -> {', '.join(self.new)} ({_EVIDENCE[self.evidence]})"
        if self.change == "retired":
            return first + (f" (consider {', '.join(self.new)})" if self.new else "")
        if self.change == "added":
            return first + (f" (was an alternate id of {', '.join(self.old)})" if self.old else "")
        parts = [f"- {value}" for value in self.old] + [f"+ {value}" for value in self.new]
        return f"{first}: {' '.join(parts)}" if parts else first
