"""Mentions whose concepts are known: what trained linkers learn from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from biograft.kb import KnowledgeBase


@dataclass(frozen=True, slots=True)
class LabelledMention:
    """A mention, taken by itself, and the ids of the concepts that are right for it."""

    text: str
    concepts: frozenset[str]
    document: str = ""
    """Where it stands; mentions of one document are never on both sides of a split."""


def concept_rows(kb: KnowledgeBase, ids: Iterable[str]) -> tuple[int, ...]:
    """Give the rows of all concepts of a store that some ids mean."""
    return tuple(sorted({kb.row(concept.id) for each in ids for concept in kb.by_id(each)}))
