"""NIL by score: the scores below which a linker without a calibration gives no answer.

Chosen on dev splits, so that nearly all right answers stay and texts that are in no vocabulary have
no answer. A short word with one wrong letter has a low score, too, and is no NIL.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from biograft.text import HAN

LEXICAL_NIL = 0.55
"""For lexical search alone."""
FUSED_NIL = 0.6
"""For lexical search beside dense search, whose cosines are higher."""
CHINESE_NIL = 0.4
"""For texts with Chinese characters, of which names share single ones."""

_HAN = re.compile(f"[{HAN}]")


def default_threshold(text: str, generators: Collection[str]) -> float | None:
    """Return the score below which the answer to a text is NIL; None for dense search alone.

    >>> default_threshold("hart atack", ["lexical"]), default_threshold("肚子疼", ["lexical"])
    (0.55, 0.4)
    """
    if "lexical" not in generators:
        return None
    if _HAN.search(text):
        return CHINESE_NIL
    return LEXICAL_NIL if len(generators) == 1 else FUSED_NIL


_MIN_LENGTH = 4
"""Shorter words are other words if a letter differs."""


def is_misspelt(text: str, name: str) -> bool:
    """Whether one letter is missing, added or wrong, or two are swapped, within a word.

    >>> is_misspelt("fevr", "Fever"), is_misspelt("hand", "sand"), is_misspelt("flu", "fly")
    (True, False, False)
    """
    a, b = text.casefold(), name.casefold()
    if min(len(a), len(b)) < _MIN_LENGTH or abs(len(a) - len(b)) > 1 or a[0] != b[0]:
        return False
    if not (a.isascii() and a.replace(" ", "").isalpha()):
        return False
    start = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
    if start is None:  # one begins with the other
        return True
    a, b = a[start:], b[start:]
    if len(a) != len(b):
        return a[len(a) > len(b) :] == b[len(b) > len(a) :]
    return a[1:] == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])
