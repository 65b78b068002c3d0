"""How concepts and relations are put into words for a query, and answers compared with names.

The rules are those of KeBioLM's probe. Signs and Chinese characters are tokens by themselves, so
that a decoded text has blanks where a name has none; ``answer_key`` drops them on both sides.
"""

from __future__ import annotations

import re
from pathlib import Path

from biograft.errors import FormatError
from biograft.sources.files import read_lines
from biograft.text import HAN

BLANK = "[MASK]"
"""What stands in a prompt for the answer, whatever a model calls its token."""

_IS_A = ("isa", "is a")
_PASSIVE = ("of", "as", "by")
_IN_BRACKETS = re.compile(r"\([^()]*\)|（[^（）]*）")
_ALONE = re.compile(rf"\s*([^\w\s]|[{HAN}])\s*")
"""A sign or a Chinese character, with the blanks beside it."""


def relation_text(name: str) -> str:
    """Say a relation in words.

    >>> [relation_text(name) for name in ("part_of", "is-a", "may_treat", "diagnosed_by")]
    ['is part of', 'is a', 'may treat', 'is diagnosed by']
    """
    words = re.sub(r"[_\-\s]+", " ", name).strip()
    if words.lower() in _IS_A:
        return "is a"
    return f"is {words}" if words.split(" ")[-1].lower() in _PASSIVE else words


def read_wording(path: Path) -> dict[str, str]:
    """Read how relations are to be said: lines of name, tab, words."""
    wording = {}
    for number, line in read_lines(path):
        name, _, words = line.partition("\t")
        if not name.strip() or not words.strip():
            raise FormatError("expected a relation, tab, words", path=path, line=number, text=line)
        wording[name.strip()] = " ".join(words.split())
    return wording


def clean_name(name: str) -> str:
    """Write a name as queries and answers have it; one all in brackets keeps them.

    >>> [clean_name(name) for name in ("Heart (organ)", "Beta-2 NOS receptor", "(R)")]
    ['heart', 'beta 2 receptor', '(r)']
    """
    lowered = " ".join(name.lower().split())
    cleaned = _IN_BRACKETS.sub("", lowered.replace(" nos ", " "))
    return " ".join(cleaned.replace("-", " ").split()) or lowered


def answer_key(text: str) -> str:
    """Make the form under which a decoded text and a name are compared.

    >>> [answer_key(text) for text in ("Crohn ' s  disease", "2 型 糖 尿 病", "beta - 2 receptor")]
    ["crohn's disease", '2型糖尿病', 'beta 2 receptor']
    """
    return _ALONE.sub(r"\1", " ".join(text.lower().replace("-", " ").split()))
