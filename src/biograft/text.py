"""The normalised key under which a name is found, whatever its case, hyphens or width.

>>> normalise("Crohn’s  Disease")
'crohns disease'
>>> normalise("Ｔype-2 diabetes")
'type 2 diabetes'
"""

from __future__ import annotations

import unicodedata

APOSTROPHES = "'’‘ʼ`´＇"
"""Signs that vanish from a key, so that *Crohn's* and *Crohns* meet."""

HAN_RANGES = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
"""First and last code of the characters that write Chinese."""
HAN = "".join(f"{chr(first)}-{chr(last)}" for first, last in HAN_RANGES)
"""The same, to stand between the brackets of a regular expression."""

_SPACED = frozenset("PSZC")  # punctuation, symbols, separators, control: all become one blank


class _KeyTable(dict[int, str | None]):
    """A translation table that classifies a character when it is first met."""

    def __missing__(self, code: int) -> str | None:
        char = chr(code)
        if char in APOSTROPHES:
            value = None
        else:
            value = " " if unicodedata.category(char)[0] in _SPACED else char
        self[code] = value
        return value


_TABLE = _KeyTable()


def normalise(text: str) -> str:
    """Make the key of a name: NFKC, case folded, signs to blanks, blanks squeezed.

    A name made of signs alone keeps them, since its key would be empty otherwise.
    """
    if text.isascii():
        folded = text.lower()
    else:
        # NFKC takes the acute accent apart, into a blank and a mark
        plain = unicodedata.normalize("NFKC", text.replace("´", "'"))
        folded = unicodedata.normalize("NFKC", plain.casefold())
    key = " ".join(folded.translate(_TABLE).split())
    return key or " ".join(folded.split()) or folded
