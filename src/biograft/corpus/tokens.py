"""Text as a run of marked tokens in which names can be looked up as plain strings.

A token is a word (letters, digits, their marks), or one character of a script written without
blanks, or one sign. Blanks and hyphens only part tokens; apostrophes inside words and invisible
characters vanish; characters are folded one by one (NFKD and case), so that each keeps the
place it had in the unaltered text. (Several marks on one letter must stand in the same order in
name and text, as they do in any normal form.) A word is written between two marks, which makes a
plain search for a marked name stop at the bounds of words by itself; the plural *s* stands behind
the closing mark, so that the singular is found in the plural but not the reverse:

>>> mark("Crohn’s-disease: tumors").text.replace(WORD_STARTS, "<").replace(WORD_ENDS, ">")
'<crohn>s<disease>:<tumor>s'

Everything is done on arrays of code points, since names and corpora are large.
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.text import APOSTROPHES

WORD_STARTS, WORD_ENDS = "\x01", "\x02"
NAME_ENDS = "\x00"
"""Parts names that are marked together; in a text of its own it counts as a blank."""

_UNKNOWN, _WORD, _MARK, _SINGLE, _TAIL, _QUOTE, _BLANK, _BREAK, _NOTHING = range(9)
_MINUS = 0x2212
_N_CODES = 0x110000
_UNSPACED = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF),  # Thai, Lao, Burmese, Khmer
    (0x3005, 0x3007), (0x3041, 0x312F), (0x31A0, 0x31FF),  # kana, bopomofo
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF),  # Han
)  # fmt: skip
_SELECTORS = ((0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
_CLASSES = {
    "Zs": _BLANK, "Zl": _BLANK, "Zp": _BLANK, "Cc": _BLANK, "Cs": _BLANK, "Pd": _BLANK,
    "Mn": _MARK, "Mc": _MARK, "Me": _MARK, "Cf": _NOTHING,
}  # fmt: skip

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint32]
Kinds = npt.NDArray[np.uint8]


class Tokens(NamedTuple):
    """A marked text; of each token its place there and in the unaltered text."""

    text: str
    starts: Ints
    stems: Ints
    """Where the token ends in the marked text without its plural *s*."""
    ends: Ints
    first: Ints
    last: Ints  # exclusive


def mark(text: str, *, plurals: bool = True) -> Tokens:
    """Mark the tokens of a text."""
    return _mark(text.replace(NAME_ENDS, " "), plurals)


def mark_names(names: list[str], *, plurals: bool = True) -> list[str]:
    """Mark many names at once; one without any token becomes the empty string."""
    joined = NAME_ENDS.join(name.replace(NAME_ENDS, " ") for name in names)
    return _mark(joined, plurals).text.split(NAME_ENDS) if names else []


class _Folding:
    """What each character becomes, and of which kind that is; filled as characters are met."""

    def __init__(self) -> None:
        self.kinds: Kinds = np.zeros(_N_CODES, np.uint8)
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

    def fold(self, codes: Codes) -> tuple[Codes, Ints]:
        """Give the folded characters, and of each the index of the one it came from."""
        unknown = self.place[codes] < 0
        if unknown.any():
            self.learn(np.unique(codes[unknown]))
        lengths = self.length[codes]
        origin = np.arange(len(codes), dtype=np.int64)
        place = self.place[codes]
        if (lengths != 1).any():
            origin = np.repeat(origin, lengths)
            before = np.cumsum(lengths) - lengths
            place = place[origin] + np.arange(len(origin)) - before[origin]
        return self.folded[place], origin


def _fold(char: str) -> str:
    if char in APOSTROPHES:
        return "'"
    return unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())


def is_invisible(char: str) -> bool:
    """Say whether a character vanishes, such as a soft hyphen."""
    return _kind(char) == _NOTHING


def parts_words(char: str) -> bool:
    """Say whether a character is as good as a blank."""
    return _kind(char) in (_BLANK, _BREAK)


def _kind(char: str) -> int:
    code = ord(char)
    if char == NAME_ENDS:
        return _BREAK
    if char in APOSTROPHES:
        return _QUOTE
    if code == _MINUS or char.isspace():
        return _BLANK
    if _within(code, _SELECTORS):
        return _NOTHING
    category = unicodedata.category(char)
    if category in _CLASSES:
        return _CLASSES[category]
    return _WORD if category[0] in "LN" and not _within(code, _UNSPACED) else _SINGLE


def _within(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(low <= code <= high for low, high in ranges)


_FOLDING = _Folding()


def _mark(text: str, plurals: bool) -> Tokens:
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.dtype("<u4"))
    folded, origin = _FOLDING.fold(codes)
    kinds = _FOLDING.kinds[folded]
    kept = kinds != _NOTHING
    if not kept.all():
        folded, origin, kinds = folded[kept], origin[kept], kinds[kept]
    kinds = _settle_marks(kinds)
    quotes = kinds == _QUOTE
    if quotes.any():
        word = kinds == _WORD
        inside = quotes & _shifted(word, 1) & _shifted(word, -1)
        kinds = np.where(quotes, np.uint8(_BLANK), kinds)[~inside]
        folded, origin = folded[~inside], origin[~inside]
    return _lay_out(folded, origin, kinds, plurals)


def _settle_marks(kinds: Kinds) -> Kinds:
    """Let a combining mark belong to the character it stands on; without one it is a word."""
    marks = kinds == _MARK
    if not marks.any():
        return kinds
    base = np.maximum.accumulate(np.where(marks, 0, np.arange(len(kinds))))
    on_single = marks & (kinds[base] == _SINGLE)
    return np.where(on_single, np.uint8(_TAIL), np.where(marks, np.uint8(_WORD), kinds))


def _shifted(mask: npt.NDArray[np.bool_], by: int) -> npt.NDArray[np.bool_]:
    """See at each place the one before it (1) or after it (-1)."""
    moved = np.zeros_like(mask)
    if by > 0:
        moved[1:] = mask[:-1]
    else:
        moved[:-1] = mask[1:]
    return moved


def _lay_out(folded: Codes, origin: Ints, kinds: Kinds, plurals: bool) -> Tokens:
    """Write the tokens one behind the other, words between their marks."""
    word, single, tail = kinds == _WORD, kinds == _SINGLE, kinds == _TAIL
    first = np.flatnonzero(single | (word & ~_shifted(word, 1)))
    last = np.flatnonzero((word & ~_shifted(word, -1)) | ((single | tail) & ~_shifted(tail, -1)))
    is_word = word[first]
    plural = is_word & _ends_in_s(folded, first, last) if plurals else np.zeros_like(is_word)
    kept = word | single | tail | (kinds == _BREAK)

    added = np.zeros(len(folded) + 1, np.int64)  # marks that stand right before a character
    np.add.at(added, first[is_word], 1)
    np.add.at(added, last[is_word] + ~plural[is_word], 1)
    place = np.cumsum(kept) - 1 + np.cumsum(added[:-1])
    marked = np.empty(int(kept.sum() + added.sum()), np.dtype("<u4"))
    marked[place[kept]] = folded[kept]
    starts, ends = place[first] - is_word, place[last] + 1 + (is_word & ~plural)
    stems = np.where(plural, place[last], ends)
    marked[starts[is_word]] = ord(WORD_STARTS)
    marked[stems[is_word] - 1] = ord(WORD_ENDS)
    text = marked.tobytes().decode("utf-32-le")
    return Tokens(text, starts, stems, ends, origin[first], origin[last] + 1)


def _ends_in_s(folded: Codes, first: Ints, last: Ints) -> npt.NDArray[np.bool_]:
    """Say which tokens may be an English plural: two or more of a-z, 0-9 and then an *s*."""
    before = folded[np.maximum(last - 1, 0)] if len(folded) else folded
    letter = (before >= ord("a")) & (before <= ord("z")) & (before != ord("s"))
    digit = (before >= ord("0")) & (before <= ord("9"))
    found: npt.NDArray[np.bool_] = (
        (last - first >= 2) & (folded[last] == ord("s")) & (letter | digit)
    )
    return found
