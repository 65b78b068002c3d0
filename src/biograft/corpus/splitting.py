"""Text as plain tokens, by one rule for files of tokens and for tasks.

A token is one Chinese character or kana, a run of letters and digits, or one sign; marks such as
accents that are characters of their own belong to what they stand on. Blanks part tokens.

>>> [text[a:b] for text in ["no 3.5-fold 糖尿病"] for a, b in split_tokens(text)]
['no', '3', '.', '5', '-', 'fold', '糖', '尿', '病']
"""

from __future__ import annotations

import functools
import re
import unicodedata

from biograft.text import HAN

_ALONE = rf"\u3005-\u30ff{HAN}"  # kana, Chinese characters
_LETTER = rf"[^\W_{_ALONE}]"
_LAST = 0x20000  # scripts end here


def split_tokens(text: str) -> list[tuple[int, int]]:
    """Say where the tokens of a text stand, in order."""
    return [match.span() for match in _rule().finditer(text)]


@functools.cache
def _rule() -> re.Pattern[str]:
    marks = "".join(
        re.escape(chr(code))
        for code in range(_LAST)
        if unicodedata.category(chr(code)).startswith("M")
    )
    letters = rf"{_LETTER}+(?:[{marks}]+{_LETTER}*)*"
    return re.compile(rf"{letters}|(?:[{_ALONE}]|[^\w\s]|_)[{marks}]*")
