"""Normalised tokens, with offsets into the original text: words, and single characters of Chinese.

Text is case folded, stripped of accents, and its traditional Chinese characters become simplified
ones (OpenCC, character by character, so that offsets stay). Hyphens and whitespace separate words,
an apostrophe within a word is dropped, and other punctuation is a token of its own. A Greek letter
that stands alone is its name, a word of its own: *TNFα* has the tokens of *TNF-alpha*. A word in
*s* that may be a plural has a second hash, that of its stem. Spans of text that are found by tokens
are columns, too; of those that overlap one is kept.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from biograft.arrays import Flags, Floats, Ints, Uint64s, Uints
from biograft.compute import njit
from biograft.kb.names import APOSTROPHES, HAN_RANGES

GREEK = dict(
    zip(
        "αβγδεζηθικλμνξοπρσςτυφχψω",
        "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho "
        "sigma sigma tau upsilon phi chi psi omega".split(),
        strict=True,
    )
)
"""The names of Greek letters."""


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


Codes = Uints
Hashes = Uint64s

UNKNOWN, WORD, MARK, SINGLE, TAIL, QUOTE, SPACE, BREAK, INVISIBLE, SEVERAL = range(10)
_KIND_SHIFT, _LETTER = 24, (1 << 24) - 1
_S = ord("s")
_LETTER_A, _LETTER_Z, _DIGIT_0, _DIGIT_9 = map(ord, "az09")
"""Numbers: ``ord`` in a compiled loop takes a second to compile."""
HASH_SEED, HASH_STEP = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)


class Tokens(NamedTuple):
    """The tokens of a text in columns; a ``NAME_SEPARATOR`` is a token without letters."""

    letters: Codes
    """The folded letters of all tokens, one token after the other."""
    ends: Ints
    """End of each token in ``letters``."""
    hashes: Hashes
    """0 for a separator."""
    stems: Hashes
    """Hash of the word without its plural *s*; 0 for any other token."""
    first: Ints
    """Offset of each token in the original text."""
    last: Ints
    """Its end there, exclusive."""


@njit(work=lambda codes, *_: len(codes))
def _count_folded(codes: Codes, table: Codes, several: Codes) -> int:
    """Count the folded characters of a text; -1 if the table lacks one."""
    total = 0
    for code in codes:
        kind = table[code] >> _KIND_SHIFT
        if kind == UNKNOWN:
            return -1
        total += several[table[code] & _LETTER] if kind == SEVERAL else 1
    return total


@njit(inline="always")
def finish_hash(state: Any) -> Any:
    """Finish a hash; it is never 0."""
    mixed = (state ^ (state >> _HALF)) * HASH_STEP
    return (mixed ^ (mixed >> _HALF)) | np.uint64(1)


@njit()
def hash_word(letters: Codes, start: int, end: int) -> Any:
    """Return the hash that the scan gives a word of these letters.

    Args:
        letters: Code points.
        start: Start of the word.
        end: Its end.
    """
    state = HASH_SEED
    for k in range(start, end):
        state = (state ^ np.uint64(letters[k])) * HASH_STEP
    return finish_hash(state)


def hash_words(words: Sequence[str]) -> Hashes:
    """Return the hash that the scan gives each of some words, which are folded letters."""
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    letters = np.frombuffer("".join(words).encode("utf-32-le"), np.dtype("<u4"))
    starts = np.cumsum(lengths) - lengths
    states = np.full(len(words), HASH_SEED, np.uint64)
    for k in range(int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > k)
        states[longer] = (
            states[longer] ^ letters[starts[longer] + k].astype(np.uint64)
        ) * HASH_STEP
    states = (states ^ (states >> _HALF)) * HASH_STEP
    hashes: Hashes = (states ^ (states >> _HALF)) | np.uint64(1)
    return hashes


def positions_in(hashes: Hashes, known: Hashes) -> Ints:
    """Return the position of each hash among known ones; -1 where it is none of them.

    Args:
        hashes: Hashes.
        known: Hashes in ascending order, at least one.
    """
    at = np.searchsorted(known, hashes) % len(known)
    return np.where(known[at] == hashes, at, -1)


_SLOT_SHIFT = np.uint64(20)


def hash_slots(keys: Hashes) -> Hashes:
    """Return an open hash table of distinct keys, at most half full; 0 is empty.

    Args:
        keys: Hashes; 0 is none.
    """
    keys = np.unique(keys[keys > 0])
    size = 1 << max(4, int(2 * len(keys)).bit_length())
    slots = np.zeros(size, np.uint64)
    mask, step = np.uint64(size - 1), np.uint64(0)
    left = keys
    while len(left):
        at = ((left >> _SLOT_SHIFT) + step) & mask
        free = np.flatnonzero(slots[at] == 0)
        slots[at[free]] = left[free]  # of several with one slot, the last stays
        left = left[slots[at] != left]
        step += np.uint64(1)
    return slots


@njit()
def slot_of(slots: Hashes, key: Any) -> Any:
    """Return the slot of a key, -1 if there is none.

    Args:
        slots: Table of ``hash_slots``.
        key: The key.
    """
    mask = np.uint64(len(slots) - 1)
    at = (key >> _SLOT_SHIFT) & mask
    while slots[at]:
        if slots[at] == key:
            return np.int64(at)
        at = (at + np.uint64(1)) & mask
    return np.int64(-1)


@njit(inline="always")
def _is_plural(n_letters: int, before: Any, latest: Any) -> bool:
    """Whether a word may be an English plural: two or more of a-z, 0-9 and then an *s*."""
    is_letter = _LETTER_A <= before <= _LETTER_Z and before != _S
    return n_letters > 2 and latest == _S and (is_letter or _DIGIT_0 <= before <= _DIGIT_9)


@njit(work=lambda codes, *_: 2 * len(codes))
def _scan(
    codes: Codes, table: Codes, several: Codes, total: int
) -> tuple[Codes, Ints, Hashes, Hashes, Ints, Ints]:
    """Fold characters, drop invisible ones, attach combining marks, and find the tokens.

    A mark belongs to the character before it; without one it is a word.
    """
    letters, at, token = np.empty(total, np.uint32), 0, -1
    hashes, stems = np.empty(total, np.uint64), np.zeros(total, np.uint64)
    ends, first, last = (
        np.empty(total, np.int64),
        np.empty(total, np.int64),
        np.empty(total, np.int64),
    )
    n_letters, base, quoted = 0, SPACE, False  # letters of the open word; an apostrophe after them
    before = latest = np.uint32(0)
    end = 0
    state = earlier = HASH_SEED
    i = 0
    more: Any = 0  # where the rest of a character that becomes several is, and how much
    left: Any = 0
    while i < len(codes) or left:
        if left:
            entry = several[more]
            more, left = more + 1, left - 1
        else:
            entry = table[codes[i]]
            i += 1
            if entry >> _KIND_SHIFT == SEVERAL:
                more = np.int64(entry & _LETTER) + 1
                left = np.int64(several[more - 1])
                continue
        kind, code = entry >> _KIND_SHIFT, entry & _LETTER
        if kind == WORD and n_letters:  # most characters
            base, quoted = WORD, False
            earlier, state = state, (state ^ np.uint64(code)) * HASH_STEP
            before, latest = latest, code
            letters[at] = code
            at, n_letters, end = at + 1, n_letters + 1, i
            continue
        if kind == INVISIBLE:
            continue
        if kind == MARK:
            kind = TAIL if base == SINGLE else WORD
        else:
            base = kind
        if kind == QUOTE and n_letters and not quoted:
            quoted = True
            continue
        if n_letters and kind != WORD:
            hashes[token], ends[token], last[token] = finish_hash(state), at, end
            if _is_plural(n_letters, before, latest):
                stems[token] = finish_hash(earlier)
            n_letters = 0
        quoted = False
        if kind == SPACE or kind == QUOTE:  # noqa: PLR1714, SIM109 - much faster than a search
            continue
        if kind != TAIL and not n_letters:
            token += 1
            first[token] = i - 1
            hashes[token] = 0
            state = HASH_SEED
        if kind != BREAK:
            earlier, state = state, (state ^ np.uint64(code)) * HASH_STEP
            letters[at] = code
            at += 1
        if kind == WORD:
            before, latest = latest, code
            n_letters, end = n_letters + 1, i
        else:
            hashes[token] = finish_hash(state) if kind != BREAK else np.uint64(0)
            ends[token], last[token] = at, i
    if n_letters:
        hashes[token], ends[token], last[token] = finish_hash(state), at, end
        if _is_plural(n_letters, before, latest):
            stems[token] = finish_hash(earlier)
    m = token + 1
    return letters[:at], ends[:m], hashes[:m], stems[:m], first[:m], last[:m]


NAME_SEPARATOR = "\x00"
"""Separates names, or texts, that are folded together; within one it counts as a space."""

_MINUS = 0x2212
_N_CODES = 0x110000
_N_SEVERAL = 1 << 17
"""Space for what all characters of Unicode become that become several (a test counts them)."""
_UNSPACED = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),  # Thai, Lao, Burmese, Khmer
    (0x3005, 0x3007),
    (0x3041, 0x312F),
    (0x31A0, 0x31FF),  # kana, bopomofo
    *HAN_RANGES,
)
_SELECTORS = ((0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
_CLASSES = {
    **dict.fromkeys(("Zs", "Zl", "Zp", "Cc", "Cs", "Pd"), SPACE),
    **dict.fromkeys(("Mn", "Mc", "Me"), MARK),
    "Cf": INVISIBLE,
}


_ACCENTS = re.compile("[\u0300-\u036f]")
"""Marks of Latin, Greek and Cyrillic letters; those of other scripts, such as kana, tell words."""
_GREEK_RANGE = (0x370, 0x400)
_SPELLED = 0xF0000
"""Codes for private use from here on stand for Greek letters that are spelled out."""
_MU = 0x3BC


class _Folding:
    """The folded form of each character with its kind, filled in on first use.

    An entry of ``table`` is a kind and a letter; of a character that becomes several, the position
    of their number and their entries in ``several``.
    """

    def __init__(self) -> None:
        self.table: Codes = np.zeros(_N_CODES, np.uint32)
        self.several: Codes = np.zeros(_N_SEVERAL, np.uint32)
        self._n_several = 0
        self._lock = Lock()
        self.add(np.arange(128, dtype=np.uint32))

    def add(self, codes: Codes) -> None:
        """Add the folded forms of characters."""
        with self._lock:
            for code in codes[self.table[codes] == 0].tolist():
                folded = [_pack(_kind(char), ord(char)) for char in _fold(chr(code))]
                if len(folded) == 1:
                    self.table[code] = folded[0]
                elif not folded:
                    self.table[code] = _pack(INVISIBLE, 0)
                else:  # other threads read the table: what an entry points to is there before it
                    start, end = self._n_several, self._n_several + 1 + len(folded)
                    self.several[start:end] = [len(folded), *folded]
                    self.table[code], self._n_several = _pack(SEVERAL, start), end

    def scan(self, codes: Codes) -> Tokens:
        """Find the tokens of a text."""
        total = _count_folded(codes, self.table, self.several)
        if total < 0:
            self.add(np.unique(codes[self.table[codes] == 0]))
            total = _count_folded(codes, self.table, self.several)
        return Tokens(*_scan(codes, self.table, self.several, total))


def _pack(kind: int, value: int) -> int:
    return kind << _KIND_SHIFT | value


def _fold(char: str) -> str:
    if char in APOSTROPHES:
        return "'"
    if _SPELLED <= ord(char) < _SPELLED + _GREEK_RANGE[1]:
        name = GREEK.get(chr(ord(char) - _SPELLED))
        return f" {name} " if name else char
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
    return simplify(_ACCENTS.sub("", folded))


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


def join_texts(texts: Sequence[str]) -> Codes:
    """Join texts by ``NAME_SEPARATOR``; those within them become spaces."""
    joined = NAME_SEPARATOR.join(texts)
    if joined.count(NAME_SEPARATOR) >= max(len(texts), 1):
        joined = NAME_SEPARATOR.join([text.replace(NAME_SEPARATOR, " ") for text in texts])
    return np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.dtype("<u4"))


def find_tokens(codes: Codes) -> Tokens:
    """Find the tokens of texts that were joined by ``join_texts``; no token crosses a separator."""
    return _FOLDING.scan(_spell_greek(codes))


def _spell_greek(codes: Codes) -> Codes:
    """Mark the Greek letters that stand alone, but not the one of units: *μg*."""
    is_greek = (codes >= _GREEK_RANGE[0]) & (codes < _GREEK_RANGE[1])
    at = np.flatnonzero(is_greek)
    if not len(at):
        return codes
    padded = np.zeros(len(codes) + 2, np.uint32)
    padded[1:-1] = codes
    near_greek = np.zeros(len(codes) + 2, np.bool_)
    near_greek[1:-1] = is_greek
    lower = _greek_letters()[codes[at] - _GREEK_RANGE[0]]
    after = padded[at + 2] | 0x20
    is_unit = (lower == _MU) & (after >= ord("a")) & (after <= ord("z"))
    chosen = (lower > 0) & ~near_greek[at] & ~near_greek[at + 2] & ~is_unit
    spelled = codes.copy()
    spelled[at[chosen]] = lower[chosen] + _SPELLED
    return spelled


@cache
def _greek_letters() -> Codes:
    """Return the lower-case letter of each Greek code that has a name, 0 for others."""
    letters = np.zeros(_GREEK_RANGE[1] - _GREEK_RANGE[0], np.uint32)
    for code in range(*_GREEK_RANGE):
        if chr(code).lower() in GREEK:
            letters[code - _GREEK_RANGE[0]] = ord(chr(code).lower())
    return letters


def han_codes(letters: Codes, lengths: Ints, ends: Ints) -> Codes:
    """Return the Chinese character of each token, 0 of other tokens.

    Args:
        letters: Letters of the tokens.
        lengths: Number of letters of each.
        ends: End of each in ``letters``.
    """
    codes = np.zeros(len(ends), np.uint32)
    single = np.flatnonzero(lengths == 1)
    found = letters[ends[single] - 1]
    is_han = np.zeros(len(found), np.bool_)
    for first, last in HAN_RANGES:
        is_han |= (found >= first) & (found <= last)
    codes[single] = np.where(is_han, found, 0)
    return codes


class Spans(NamedTuple):
    """Spans of several documents, in columns."""

    document: Ints
    """Index of the document."""
    start: Ints
    """Character offset of each span's first character."""
    end: Ints
    """Character offset behind its last character."""

    def take(self, rows: Ints | Flags) -> Spans:
        """Return the spans of some rows."""
        return Spans(*(column[rows] for column in self))


def select_disjoint(spans: Spans, scores: Floats) -> Ints:
    """Return the rows of spans that do not overlap, sorted by position.

    Of overlapping spans the longest is kept, of equally long ones the best-scored, then the first.

    Args:
        spans: Spans with their document.
        scores: Score of each.
    """
    if not len(spans.start):
        return np.zeros(0, np.int64)
    # concatenate the documents, so that one array of characters serves all
    lengths = np.zeros(spans.document.max() + 2, np.int64)
    np.maximum.at(lengths, spans.document + 1, spans.end)
    shift = np.cumsum(lengths)[spans.document]
    start, end = spans.start + shift, spans.end + shift
    order = np.lexsort((start, -scores, start - end))
    kept: Flags = _disjoint(start[order], end[order], int(end.max()))
    chosen = order[kept]
    rows: Ints = chosen[np.argsort(start[chosen])]
    return rows


@njit()
def _disjoint(start: Ints, end: Ints, n_characters: int) -> Flags:
    """Take spans in order unless an end is covered by a taken one, which is at least as long."""
    taken = np.zeros(n_characters, np.bool_)
    kept = np.zeros(len(start), np.bool_)
    for n in range(len(start)):
        if not (taken[start[n]] or taken[end[n] - 1]):
            kept[n] = True
            taken[start[n] : end[n]] = True
    return kept
