"""Next sentence: whether the second part of a sequence follows the first in its text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.objectives.next_sentence.config import NextSentenceConfig as NextSentenceConfig
    from biograft.objectives.next_sentence.objective import NextSentence as NextSentence


__getattr__, __dir__, __all__ = lazify(__name__)
