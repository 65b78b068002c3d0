"""Normalised tokens for dictionary matching, with offsets into the original text.

Text is case folded, stripped of accents, and its traditional Chinese characters become simplified
ones (OpenCC, character by character, so that offsets stay). Words are written between marks, so
that a name matches whole words only; Chinese characters are tokens of their own.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from biograft.text import APOSTROPHES, HAN_RANGES


class _Simplified(dict[int, str]):
    """A translation table that converts a character when it is first used."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if any(first <= code <= last for first, last in HAN_RANGES):
            converted = _converter().convert(char)
            char = converted if len(converted) == 1 else char
        self[code] = char
        return char


_TABLE = _Simplified()


def simplify(text: str) -> str:
    """Convert traditional Chinese characters into simplified ones.

    >>> simplify("糖尿病腎病")
    '糖尿病肾病'
    """
    return text if text.isascii() else text.translate(_TABLE)


@cache
def _converter() -> Any:
    from opencc import OpenCC

    return OpenCC("t2s")


Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint32]
Bytes = npt.NDArray[np.uint8]

UNKNOWN, WORD, MARK, SINGLE, TAIL, QUOTE, SPACE, BREAK, INVISIBLE = range(9)
_WORD_START, _WORD_END = 1, 2
_MAX_BYTES = 6
"""Maximum bytes of a character: four, and a mark on either side."""
_S = ord("s")


@numba.njit(cache=True, nogil=True)
def fold_codes(
    codes: Codes, position: Ints, length: Ints, folded: Codes, kinds: Bytes
) -> tuple[Codes, Bytes, Ints]:
    """Fold characters, drop invisible ones, and attach combining marks.

    A mark belongs to the character before it; without one it is a word.
    """
    total = 0
    for code in codes:
        total += length[code]
    out = np.empty(total, np.uint32)
    kind_of = np.empty(total, np.uint8)
    origin = np.empty(total, np.int64)
    n, base = 0, SPACE
    for i in range(len(codes)):
        first = position[codes[i]]
        for k in range(first, first + length[codes[i]]):
            kind = kinds[folded[k]]
            if kind == INVISIBLE:
                continue
            if kind == MARK:
                kind = TAIL if base == SINGLE else WORD
            else:
                base = kind
            out[n] = folded[k]
            kind_of[n] = kind
            origin[n] = i
            n += 1
    return out[:n], kind_of[:n], origin[:n]


@numba.njit(cache=True, nogil=True, inline="always")
def _write(out: Bytes, at: int, code: int) -> int:
    """Write a character as UTF-8; return the position after it."""
    if code < 0x80:
        out[at] = code
        return at + 1
    if code < 0x800:
        out[at] = 0xC0 | code >> 6
        out[at + 1] = 0x80 | code & 0x3F
        return at + 2
    if code < 0x10000:
        out[at] = 0xE0 | code >> 12
        out[at + 1] = 0x80 | code >> 6 & 0x3F
        out[at + 2] = 0x80 | code & 0x3F
        return at + 3
    out[at] = 0xF0 | code >> 18
    out[at + 1] = 0x80 | code >> 12 & 0x3F
    out[at + 2] = 0x80 | code >> 6 & 0x3F
    out[at + 3] = 0x80 | code & 0x3F
    return at + 4


@numba.njit(cache=True, nogil=True)
def write_tokens(
    codes: Codes, kinds: Bytes, origin: Ints, plurals: bool
) -> tuple[Bytes, Ints, Ints, Ints, Ints, Ints]:
    """Write the tokens one after the other, words between marks.

    Returns the bytes and, for each token, its start there, its ends without and with the plural
    *s*, and its offsets in the original text.
    """
    n = len(codes)
    out = np.empty(_MAX_BYTES * n + 1, np.uint8)
    starts, stems, ends = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    first, last = np.empty(n, np.int64), np.empty(n, np.int64)
    at, token, n_letters, before, latest = 0, -1, 0, 0, 0
    for i in range(n + 1):
        kind = SPACE if i == n else kinds[i]
        if kind == QUOTE:
            if n_letters and kinds[i - 1] == WORD and i + 1 < n and kinds[i + 1] == WORD:
                continue
            kind = SPACE
        if kind != WORD and n_letters:
            plural = plurals and _is_plural(n_letters, before, latest)
            stems[token], ends[token] = _close(out, at, plural)
            at, n_letters = ends[token], 0
        if kind == SPACE:
            continue
        code = codes[i]
        if kind == SINGLE or (kind == WORD and not n_letters):
            token += 1
            starts[token] = at
            first[token] = origin[i]
            if kind == WORD:
                at = _write(out, at, _WORD_START)
        at = _write(out, at, code)
        if kind == BREAK:
            continue
        last[token] = origin[i] + 1
        if kind == WORD:
            n_letters += 1
            before, latest = latest, code
        else:
            stems[token] = ends[token] = at
    m = token + 1
    return out[:at], starts[:m], stems[:m], ends[:m], first[:m], last[:m]


@numba.njit(cache=True, nogil=True, inline="always")
def _close(out: Bytes, at: int, plural: bool) -> tuple[int, int]:
    """Write the end mark of a word, before its plural *s*; return the ends of stem and word."""
    if plural:
        out[at - 1], out[at] = _WORD_END, _S
        return at, at + 1
    out[at] = _WORD_END
    return at + 1, at + 1


@numba.njit(cache=True, nogil=True, inline="always")
def _is_plural(n_letters: int, before: int, latest: int) -> bool:
    """Whether a word may be an English plural: two or more of a-z, 0-9 and then an *s*."""
    is_letter = ord("a") <= before <= ord("z") and before != _S
    return n_letters > 2 and latest == _S and (is_letter or ord("0") <= before <= ord("9"))


WORD_START, WORD_END = "\x01", "\x02"
NAME_SEPARATOR = "\x00"
"""Separates names that are marked together; within a text it counts as a space."""

_MINUS = 0x2212
_N_CODES = 0x110000
_UNSPACED = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF),  # Thai, Lao, Burmese, Khmer
    (0x3005, 0x3007), (0x3041, 0x312F), (0x31A0, 0x31FF),  # kana, bopomofo
    *HAN_RANGES,
)  # fmt: skip
_SELECTORS = ((0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
_CLASSES = {
    "Zs": SPACE, "Zl": SPACE, "Zp": SPACE, "Cc": SPACE, "Cs": SPACE, "Pd": SPACE,
    "Mn": MARK, "Mc": MARK, "Me": MARK, "Cf": INVISIBLE,
}  # fmt: skip


class Tokens(NamedTuple):
    """A marked text as UTF-8, with the offsets of each token there and in the original text."""

    data: Bytes
    starts: Ints
    stems: Ints
    """End of the token in the marked text without its plural *s*."""
    ends: Ints
    first: Ints
    last: Ints  # exclusive

    @property
    def text(self) -> str:
        """The marked text itself."""
        return self.data.tobytes().decode("utf-8", "surrogatepass")


class _Folding:
    """The folded form and the kind of each character, filled in on first use."""

    def __init__(self) -> None:
        self.kinds: Bytes = np.zeros(_N_CODES, np.uint8)
        self.position: Ints = np.full(_N_CODES, -1, np.int64)
        self.length: Ints = np.zeros(_N_CODES, np.int64)
        self._folded: list[int] = []
        self.folded: Codes = np.zeros(0, np.uint32)
        self.add(np.arange(128, dtype=np.uint32))

    def add(self, codes: Codes) -> None:
        """Add the folded forms of characters."""
        for code in codes.tolist():
            folded = _fold(chr(code))
            self.length[code] = len(folded)
            self._folded.extend(map(ord, folded))
            self.position[code] = len(self._folded) - len(folded)
            for char in folded:
                self.kinds[ord(char)] = _kind(char)
        self.folded = np.array(self._folded, np.uint32)

    def fold(self, codes: Codes) -> tuple[Codes, Bytes, Ints]:
        """Return the folded characters, their kinds, and the index each came from."""
        unknown = self.position[codes] < 0
        if unknown.any():
            self.add(np.unique(codes[unknown]))
        folded: tuple[Codes, Bytes, Ints] = fold_codes(
            codes, self.position, self.length, self.folded, self.kinds
        )
        return folded


def _fold(char: str) -> str:
    if char in APOSTROPHES:
        return "'"
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
    return simplify(folded)


def is_invisible(char: str) -> bool:
    """Whether a character is dropped, such as a soft hyphen."""
    return _kind(char) == INVISIBLE


def separates_words(char: str) -> bool:
    """Whether a character separates words, as whitespace does."""
    return _kind(char) in (SPACE, BREAK)


def _kind(char: str) -> int:
    code = ord(char)
    if char == NAME_SEPARATOR:
        return BREAK
    if char in APOSTROPHES:
        return QUOTE
    if code == _MINUS or char.isspace():
        return SPACE
    if _within(code, _SELECTORS):
        return INVISIBLE
    category = unicodedata.category(char)
    if category in _CLASSES:
        return _CLASSES[category]
    return WORD if category[0] in "LN" and not _within(code, _UNSPACED) else SINGLE


def _within(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(low <= code <= high for low, high in ranges)


_FOLDING = _Folding()


def mark(text: str, *, plurals: bool = True) -> Tokens:
    """Mark the tokens of a text."""
    return mark_joined(text.replace(NAME_SEPARATOR, " "), plurals=plurals)


def mark_names(names: list[str], *, plurals: bool = True) -> list[bytes]:
    """Mark many names at once; a name without tokens becomes empty."""
    joined = NAME_SEPARATOR.join(name.replace(NAME_SEPARATOR, " ") for name in names)
    if not names:
        return []
    return mark_joined(joined, plurals=plurals).data.tobytes().split(NAME_SEPARATOR.encode())


def mark_joined(text: str, *, plurals: bool = True) -> Tokens:
    """Mark texts joined by ``NAME_SEPARATOR``; no token crosses it."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.dtype("<u4"))
    return Tokens(*write_tokens(*_FOLDING.fold(codes), plurals))
