"""Masked tokens: some are hidden, with the whole of their word or entity, and foretold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.objectives.masked_tokens.config import MaskedTokensConfig
    from biograft.objectives.masked_tokens.objective import MaskedTokens

__all__ = ["MaskedTokens", "MaskedTokensConfig"]

_HOMES = {
    "MaskedTokens": "biograft.objectives.masked_tokens.objective",
    "MaskedTokensConfig": "biograft.objectives.masked_tokens.config",
}

__getattr__ = load_on_use(__name__, _HOMES)
