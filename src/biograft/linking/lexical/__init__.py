"""The lexical generator: names that look like a text, exactly and without training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.linking.lexical.building import LexicalConfig
    from biograft.linking.lexical.index import LexicalIndex

__all__ = ["LexicalConfig", "LexicalIndex"]

_HOMES = {
    "LexicalConfig": "biograft.linking.lexical.building",
    "LexicalIndex": "biograft.linking.lexical.index",
}

__getattr__ = load_on_use(__name__, _HOMES)
