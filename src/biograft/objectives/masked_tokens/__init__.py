"""Masked tokens: some are hidden, with the whole of their word or entity, and foretold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.objectives.masked_tokens.config import MaskedTokensConfig as MaskedTokensConfig
    from biograft.objectives.masked_tokens.objective import MaskedTokens as MaskedTokens


__getattr__, __dir__, __all__ = lazify(__name__)
