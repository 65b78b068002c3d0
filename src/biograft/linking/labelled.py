"""Mentions whose concepts are known: what trained linkers learn from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LabelledMention:
    """A mention, taken by itself, and the ids of the concepts that are right for it."""

    text: str
    concepts: frozenset[str]
    document: str = ""
    """Where it stands; mentions of one document are never on both sides of a split."""
