"""Masked mentions: what a hidden mention was, as a vector."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.objectives.masked_mention.config import MaskedMentionConfig
    from biograft.objectives.masked_mention.objective import MaskedMention

__all__ = ["MaskedMention", "MaskedMentionConfig"]

_HOMES = {
    "MaskedMention": "biograft.objectives.masked_mention.objective",
    "MaskedMentionConfig": "biograft.objectives.masked_mention.config",
}

__getattr__ = load_on_use(__name__, _HOMES)
