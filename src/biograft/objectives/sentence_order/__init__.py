"""Sentence order: whether the two parts of a sequence stand as in the text or swapped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.objectives.sentence_order.config import SentenceOrderConfig
    from biograft.objectives.sentence_order.objective import SentenceOrder

__all__ = ["SentenceOrder", "SentenceOrderConfig"]

_HOMES = {
    "SentenceOrder": "biograft.objectives.sentence_order.objective",
    "SentenceOrderConfig": "biograft.objectives.sentence_order.config",
}

__getattr__ = load_on_use(__name__, _HOMES)
