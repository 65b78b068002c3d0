"""NIL by score: the scores below which the first candidate is more often wrong than right.

Chosen on dev splits for linkers without a calibration, so that nearly all right answers stay and
texts that are in no vocabulary have no answer. A threshold of 0 gives every answer.
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
