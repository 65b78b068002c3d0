"""Traditional Chinese characters as simplified ones, one for one, so that offsets stay.

OpenCC knows them; the few that depend on the word they stand in are taken as they mostly are, the
same in names and in text.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from biograft.text import HAN_RANGES


class _Simplified(dict[int, str]):
    """A translation table that looks a character up when it is first met."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if any(first <= code <= last for first, last in HAN_RANGES):
            found = _converter().convert(char)
            char = found if len(found) == 1 else char
        self[code] = char
        return char


_TABLE = _Simplified()


def simplify(text: str) -> str:
    """Write traditional characters as simplified ones.

    >>> simplify("糖尿病腎病")
    '糖尿病肾病'
    """
    return text if text.isascii() else text.translate(_TABLE)


@cache
def _converter() -> Any:
    from opencc import OpenCC

    return OpenCC("t2s")
