"""Spelling errors: names of a store that are misspelt in running text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.text.spelling.corrections import WordFinder as WordFinder
    from biograft.text.spelling.misspelt import (
        MisspeltMatch as MisspeltMatch,
        MisspeltNames as MisspeltNames,
        may_be_misspelt as may_be_misspelt,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
