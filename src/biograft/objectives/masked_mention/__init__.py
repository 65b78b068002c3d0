"""Masked mentions: what a hidden mention was, as a vector."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.objectives.masked_mention.config import MaskedMentionConfig as MaskedMentionConfig
    from biograft.objectives.masked_mention.objective import MaskedMention as MaskedMention


__getattr__, __dir__, __all__ = lazify(__name__)
