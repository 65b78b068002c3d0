"""Lexical search: TF-IDF cosine of character n-grams, and substitution of word synonyms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.linking.lexical.index import (
        LexicalConfig as LexicalConfig,
        LexicalIndex as LexicalIndex,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
