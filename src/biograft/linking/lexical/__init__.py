"""The lexical generator: names that look like a text, exactly and without training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.linking.lexical.index import LexicalConfig, LexicalIndex

__all__ = ["LexicalConfig", "LexicalIndex"]

_HOMES = {
    "LexicalConfig": "biograft.linking.lexical.index",
    "LexicalIndex": "biograft.linking.lexical.index",
}

__getattr__ = load_on_use(__name__, _HOMES)
