"""What phrases and pieces are made of: characters in Chinese, words elsewhere.

In Chinese a run of Latin letters, Greek letters or digits is one unit (``HPV``, ``B12``), and so
are single characters tied by hyphens, as transliterated names are (``洛-穆-比``). Signs and blanks
belong to no unit.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

CHINESE = "zh"

_LATIN = "A-Za-z0-9\u00c0-\u024f\u0370-\u03ff\uff10-\uff19\uff21-\uff3a\uff41-\uff5a"
_TIED = r"[^\W_](?:-[^\W_]){2,}|(?<![^\W_])[^\W_]-[^\W_]"
_IN_CHINESE = re.compile(
    rf"[{_LATIN}]+(?:[-/.'’][{_LATIN}]+)*|{_TIED}|[^\W_]",
)
_IN_WORDS = re.compile(r"[^\W_]+(?:[-'’./+][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class Unit:
    """A character or a word: where it stands, and the form in which it is compared."""

    start: int
    end: int
    form: str


def read_units(text: str, language: str) -> list[Unit]:
    """Take a text apart; what lies between units are signs and blanks."""
    pattern = _IN_CHINESE if language == CHINESE else _IN_WORDS
    return [Unit(*found.span(), fold(found[0])) for found in pattern.finditer(text)]


def runs(text: str, language: str) -> list[list[Unit]]:
    """Group the units of a text that no sign parts; in Chinese no blank either."""
    grouped: list[list[Unit]] = []
    end = -1
    for unit in read_units(text, language):
        gap = text[end : unit.start] if end >= 0 else ""
        if end < 0 or (gap if language == CHINESE else gap.strip()):
            grouped.append([])
        grouped[-1].append(unit)
        end = unit.end
    return grouped


@lru_cache(1 << 16)
def fold(text: str) -> str:
    """Make the form in which units are compared: NFKC, case folded."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def join(forms: Sequence[str], language: str) -> str:
    """Write the forms of neighbouring units as one text."""
    return ("" if language == CHINESE else " ").join(forms)


def is_number(form: str) -> bool:
    """Whether a unit is a number, which says nothing about the phrase around it."""
    return not any(char.isalpha() for char in form)
