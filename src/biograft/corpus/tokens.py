"""Text as a run of marked tokens in which names can be looked up as plain strings.

A token is a word (letters, digits, their marks), or one character of a script written without
blanks, or one sign. Blanks and hyphens only part tokens; apostrophes inside words and invisible
characters vanish; characters are folded one by one (NFKD, case, traditional Chinese to
simplified), so that each keeps the place it had in the unaltered text. (Several marks on one
letter must stand in the same order in name and text, as they do in any normal form.) A word is
written between two marks, which makes a plain search for a marked name stop at the bounds of words
by itself; the plural *s* stands behind the closing mark, so that the singular is found in the
plural but not the reverse:

>>> mark("Crohn’s-disease: tumors").text.replace(WORD_STARTS, "<").replace(WORD_ENDS, ">")
'<crohn>s<disease>:<tumor>s'

A compiled loop (:mod:`biograft.corpus.marking`) does it on code points, since names and corpora
are large.
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

import numpy as np

from biograft.corpus.marking import (
    BLANK,
    BREAK,
    MARK,
    NOTHING,
    QUOTE,
    SINGLE,
    WORD,
    Bytes,
    Codes,
    Ints,
    fold_codes,
    lay_out,
)
from biograft.corpus.simplified import simplify
from biograft.text import APOSTROPHES, HAN_RANGES

WORD_STARTS, WORD_ENDS = "\x01", "\x02"
NAME_ENDS = "\x00"
"""Parts names that are marked together; in a text of its own it counts as a blank."""

_MINUS = 0x2212
_N_CODES = 0x110000
_UNSPACED = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF),  # Thai, Lao, Burmese, Khmer
    (0x3005, 0x3007), (0x3041, 0x312F), (0x31A0, 0x31FF),  # kana, bopomofo
    *HAN_RANGES,
)  # fmt: skip
_SELECTORS = ((0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
_CLASSES = {
    "Zs": BLANK, "Zl": BLANK, "Zp": BLANK, "Cc": BLANK, "Cs": BLANK, "Pd": BLANK,
    "Mn": MARK, "Mc": MARK, "Me": MARK, "Cf": NOTHING,
}  # fmt: skip


class Tokens(NamedTuple):
    """A marked text, as UTF-8; of each token its place there and in the unaltered text."""

    data: Bytes
    starts: Ints
    stems: Ints
    """Where the token ends in the marked text without its plural *s*."""
    ends: Ints
    first: Ints
    last: Ints  # exclusive

    @property
    def text(self) -> str:
        """The marked text itself."""
        return self.data.tobytes().decode("utf-8", "surrogatepass")


class _Folding:
    """What each character becomes, and of which kind that is; filled as characters are met."""

    def __init__(self) -> None:
        self.kinds: Bytes = np.zeros(_N_CODES, np.uint8)
        self.place: Ints = np.full(_N_CODES, -1, np.int64)
        self.length: Ints = np.zeros(_N_CODES, np.int64)
        self._folded: list[int] = []
        self.folded: Codes = np.zeros(0, np.uint32)
        self.learn(np.arange(128, dtype=np.uint32))

    def learn(self, codes: Codes) -> None:
        """Note what characters become."""
        for code in codes.tolist():
            folded = _fold(chr(code))
            self.length[code] = len(folded)
            self._folded.extend(map(ord, folded))
            self.place[code] = len(self._folded) - len(folded)
            for char in folded:
                self.kinds[ord(char)] = _kind(char)
        self.folded = np.array(self._folded, np.uint32)

    def fold(self, codes: Codes) -> tuple[Codes, Bytes, Ints]:
        """Give the folded characters, their kinds, and the index each came from."""
        unknown = self.place[codes] < 0
        if unknown.any():
            self.learn(np.unique(codes[unknown]))
        found: tuple[Codes, Bytes, Ints] = fold_codes(
            codes, self.place, self.length, self.folded, self.kinds
        )
        return found


def _fold(char: str) -> str:
    if char in APOSTROPHES:
        return "'"
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
    return simplify(folded)


def is_invisible(char: str) -> bool:
    """Say whether a character vanishes, such as a soft hyphen."""
    return _kind(char) == NOTHING


def parts_words(char: str) -> bool:
    """Say whether a character is as good as a blank."""
    return _kind(char) in (BLANK, BREAK)


def _kind(char: str) -> int:
    code = ord(char)
    if char == NAME_ENDS:
        return BREAK
    if char in APOSTROPHES:
        return QUOTE
    if code == _MINUS or char.isspace():
        return BLANK
    if _within(code, _SELECTORS):
        return NOTHING
    category = unicodedata.category(char)
    if category in _CLASSES:
        return _CLASSES[category]
    return WORD if category[0] in "LN" and not _within(code, _UNSPACED) else SINGLE


def _within(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(low <= code <= high for low, high in ranges)


_FOLDING = _Folding()


def mark(text: str, *, plurals: bool = True) -> Tokens:
    """Mark the tokens of a text."""
    return mark_joined(text.replace(NAME_ENDS, " "), plurals=plurals)


def mark_names(names: list[str], *, plurals: bool = True) -> list[bytes]:
    """Mark many names at once; one without any token becomes empty."""
    joined = NAME_ENDS.join(name.replace(NAME_ENDS, " ") for name in names)
    if not names:
        return []
    return mark_joined(joined, plurals=plurals).data.tobytes().split(NAME_ENDS.encode())


def mark_joined(text: str, *, plurals: bool = True) -> Tokens:
    """Mark texts that ``NAME_ENDS`` parts; no token reaches over it."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.dtype("<u4"))
    return Tokens(*lay_out(*_FOLDING.fold(codes), plurals))
