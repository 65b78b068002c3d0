"""The compiled loop that writes text as marked tokens; :mod:`biograft.corpus.tokens` explains them.

Everything is written as UTF-8, since a search through bytes needs no places counted anew. Halves
of surrogate pairs are written as if they were characters.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

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
