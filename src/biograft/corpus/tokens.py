"""Traditional Chinese characters as simplified ones, one for one, so that offsets stay.

OpenCC knows them; the few that depend on the word they stand in are taken as they mostly are, the
same in names and in text.
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


Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint32]
Bytes = npt.NDArray[np.uint8]

UNKNOWN, WORD, MARK, SINGLE, TAIL, QUOTE, BLANK, BREAK, NOTHING = range(9)
_STARTS, _ENDS = 1, 2
_MOST_BYTES = 6
"""What a character may take: four bytes, and a mark on either side."""
_S = ord("s")


@numba.njit(cache=True, nogil=True)
def fold_codes(
    codes: Codes, place: Ints, length: Ints, folded: Codes, kinds: Bytes
) -> tuple[Codes, Bytes, Ints]:
    """Fold characters, leave out what is nothing, and settle what a combining mark belongs to.

    A mark belongs to the character it stands on; without one it is a word.
    """
    total = 0
    for code in codes:
        total += length[code]
    out = np.empty(total, np.uint32)
    kind_of = np.empty(total, np.uint8)
    origin = np.empty(total, np.int64)
    n, base = 0, BLANK
    for i in range(len(codes)):
        first = place[codes[i]]
        for k in range(first, first + length[codes[i]]):
            kind = kinds[folded[k]]
            if kind == NOTHING:
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
    """Write a character as UTF-8; give where the next one goes."""
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
def lay_out(
    codes: Codes, kinds: Bytes, origin: Ints, plurals: bool
) -> tuple[Bytes, Ints, Ints, Ints, Ints, Ints]:
    """Write the tokens one behind the other, words between their marks.

    Gives the bytes, and of each token where it starts there, where it ends without and with its
    plural *s*, and its place in the unaltered text.
    """
    n = len(codes)
    out = np.empty(_MOST_BYTES * n + 1, np.uint8)
    starts, stems, ends = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    first, last = np.empty(n, np.int64), np.empty(n, np.int64)
    at, token, letters, before, latest = 0, -1, 0, 0, 0
    for i in range(n + 1):
        kind = BLANK if i == n else kinds[i]
        if kind == QUOTE:
            if letters and kinds[i - 1] == WORD and i + 1 < n and kinds[i + 1] == WORD:
                continue
            kind = BLANK
        if kind != WORD and letters:
            plural = plurals and _is_plural(letters, before, latest)
            stems[token], ends[token] = _close(out, at, plural)
            at, letters = ends[token], 0
        if kind == BLANK:
            continue
        code = codes[i]
        if kind == SINGLE or (kind == WORD and not letters):
            token += 1
            starts[token] = at
            first[token] = origin[i]
            if kind == WORD:
                at = _write(out, at, _STARTS)
        at = _write(out, at, code)
        if kind == BREAK:
            continue
        last[token] = origin[i] + 1
        if kind == WORD:
            letters += 1
            before, latest = latest, code
        else:
            stems[token] = ends[token] = at
    m = token + 1
    return out[:at], starts[:m], stems[:m], ends[:m], first[:m], last[:m]


@numba.njit(cache=True, nogil=True, inline="always")
def _close(out: Bytes, at: int, plural: bool) -> tuple[int, int]:
    """Write the mark behind a word, before its plural *s*; give where its stem and it end."""
    if plural:
        out[at - 1], out[at] = _ENDS, _S
        return at, at + 1
    out[at] = _ENDS
    return at + 1, at + 1


@numba.njit(cache=True, nogil=True, inline="always")
def _is_plural(letters: int, before: int, latest: int) -> bool:
    """Say whether a word may be an English plural: two or more of a-z, 0-9 and then an *s*."""
    letter = ord("a") <= before <= ord("z") and before != _S
    return letters > 2 and latest == _S and (letter or ord("0") <= before <= ord("9"))


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
