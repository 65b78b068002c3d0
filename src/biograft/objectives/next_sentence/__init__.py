"""Next sentence: whether the second part of a sequence follows the first in its text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.objectives.next_sentence.config import NextSentenceConfig
    from biograft.objectives.next_sentence.objective import NextSentence

__all__ = ["NextSentence", "NextSentenceConfig"]

_HOMES = {
    "NextSentence": "biograft.objectives.next_sentence.objective",
    "NextSentenceConfig": "biograft.objectives.next_sentence.config",
}

__getattr__ = load_on_use(__name__, _HOMES)
