"""Scripts of texts, by which a static encoder knows what it has not learned to read."""

from __future__ import annotations

import functools
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable

_MIN_SHARE = 1e-3
"""Least share of the training texts that have a letter of a script which is then known."""
_MIN_READABLE = 0.75
"""Least share of the letters of a text whose script must be known."""


@functools.cache
def script_of(letter: str) -> str:
    """Return the script of a letter, as the first word of its Unicode name; empty for others.

    >>> [script_of(char) for char in "aβ心3"]
    ['LATIN', 'GREEK', 'CJK', '']
    """
    return unicodedata.name(letter, "").split(" ", 1)[0] if letter.isalpha() else ""


def learned_scripts(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the scripts that occur in a thousandth of the texts at least, in order of their names.

    >>> learned_scripts(["Crohn's disease", "克罗恩病"])
    ('CJK', 'LATIN')
    """
    counts: Counter[str] = Counter()
    n_texts = 0
    for n_texts, text in enumerate(texts, 1):  # noqa: B007 - the number is used after the loop
        counts.update({"LATIN"} if text.isascii() else {*map(script_of, text)} - {""})
    return tuple(sorted(name for name, count in counts.items() if count >= _MIN_SHARE * n_texts))


def is_readable(text: str, scripts: Collection[str]) -> bool:
    """Return whether at least three quarters of the letters of a text are of the given scripts.

    >>> [is_readable(text, ["LATIN"]) for text in ("2型DM", "α-synuclein", "42")]
    [False, True, True]
    """
    if text.isascii() and "LATIN" in scripts:
        return True
    known = [script_of(char) in scripts for char in text if char.isalpha()]
    return sum(known) >= _MIN_READABLE * len(known)
