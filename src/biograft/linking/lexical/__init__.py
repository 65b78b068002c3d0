"""Lexical search: names by the TF-IDF cosine of their character n-grams, and by synonyms of words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.linking.lexical.index import (
        LexicalConfig as LexicalConfig,
        LexicalIndex as LexicalIndex,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
