"""Sentence order: whether the two parts of a sequence stand as in the text or swapped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.objectives.sentence_order.config import SentenceOrderConfig as SentenceOrderConfig
    from biograft.objectives.sentence_order.objective import SentenceOrder as SentenceOrder


__getattr__, __dir__, __all__ = lazify(__name__)
