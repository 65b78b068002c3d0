"""The words of a vocabulary within a few edits of another word, in compiled code.

A word of 5 to 8 letters may have one edit: a letter inserted, deleted or replaced, or two
neighbours exchanged. A longer word may have two, where an exchange counts as two letters replaced,
or one exchange. The length is that of the vocabulary's word.

With k edits at least one of k + 1 parts of a word stays intact, so that the words that share a part
are compared. :class:`WordFinder` keeps three numbers for each word: they are computed in a fraction
of a second and never stored.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from biograft.compute import njit
from biograft.text.tokens import Codes, Ints
from biograft.text.vocabulary import Uints

MIN_LETTERS, LONG_WORD, MAX_LETTERS = 5, 9, 40
"""The shortest word with an edit, the shortest with two, and the longest that is searched."""
MAX_NEAREST = 16
"""Most words that are returned."""
_STEP = np.uint64(0x9E3779B97F4A7C15)
_SHIFT, _ALL = np.uint64(29), (1 << 64) - 1
_LETTERS = 0xDF
_LETTER_A, _LETTER_Z = map(ord, "az")
"""The first letter beyond ASCII."""


class WordFinder(NamedTuple):
    """Finds the words of a vocabulary that differ from a word by few edits.

    The buckets hold the numbers of the words that share a part, its position and their length.
    """

    word_ends: Ints
    letters: Codes
    masks: Uints
    """The set of the letters of each word, in 32 bits; 0 for a word that is not searched."""
    bucket_starts: Ints
    buckets: Uints

    @classmethod
    def build(cls, word_ends: Ints, letters: Codes) -> WordFinder:
        """Build from the words of a vocabulary; those with digits or punctuation are left out."""
        masks = _letter_sets(word_ends, letters)
        n = max(int(np.count_nonzero(masks)), 8)
        n_buckets = 1 << (4 * n - 1).bit_length()
        return cls(word_ends, letters, masks, *_fill_buckets(word_ends, letters, masks, n_buckets))

    def nearest(self, word: str) -> list[tuple[int, int]]:
        """Return the number of each word within few edits, and the edits, fewest first.

        The word itself, if it is in the vocabulary, has 0 edits.
        """
        codes = np.frombuffer(word.encode("utf-32-le"), np.dtype("<u4"))
        found = np.empty((2, MAX_NEAREST), np.int64)
        n = find_nearest(*self, codes, 0, len(codes), found)
        return [(int(found[0, k]), int(found[1, k])) for k in range(n)]


@njit()
def is_letter(code: Any) -> Any:
    """Whether a folded character is a letter: those of ASCII, and all beyond Latin-1 symbols."""
    return _LETTER_A <= code <= _LETTER_Z or code >= _LETTERS


@njit()
def letter_set(letters: Codes, start: int, end: int) -> Any:
    """Return the set of the letters of a word in 32 bits; 0 if it is no word of letters."""
    mask = np.uint32(0)
    for k in range(start, end):
        if not is_letter(letters[k]):
            return np.uint32(0)
        mask |= np.uint32(1) << np.uint32(letters[k] & np.uint32(31))
    return mask


def _letter_sets(word_ends: Ints, letters: Codes) -> Uints:
    lengths = np.diff(word_ends)
    masks = np.zeros(len(lengths), np.uint32)
    if len(letters):
        bits = np.uint32(1) << (letters & np.uint32(31))
        is_other = ~(((letters >= ord("a")) & (letters <= ord("z"))) | (letters >= _LETTERS))
        some = np.flatnonzero(lengths)
        starts = word_ends[some]
        of_words = np.bitwise_or.reduceat(bits, starts)
        of_words[np.logical_or.reduceat(is_other, starts)] = 0
        masks[some] = of_words
    masks[(lengths < MIN_LETTERS) | (lengths > MAX_LETTERS)] = 0
    return masks


@njit()
def max_edits(n_letters: Any) -> Any:
    """Return how many edits a word of the vocabulary may have."""
    return 0 if n_letters < MIN_LETTERS else (1 if n_letters < LONG_WORD else 2)


@njit()
def _bucket(letters: Codes, start: Any, end: Any, part: Any, length: Any, n_buckets: Any) -> Any:
    state = np.uint64(length * 4 + part + 1) * _STEP
    for k in range(start, end):
        state = (state ^ np.uint64(letters[k])) * _STEP
        state ^= state >> _SHIFT
    return np.int64((state >> _SHIFT) & np.uint64(n_buckets - 1))


def _fill_buckets(
    word_ends: Ints, letters: Codes, masks: Uints, n_buckets: int
) -> tuple[Ints, Uints]:
    """Put each word into the bucket of each of its parts; the hashes are those of ``_bucket``."""
    words, buckets = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    lengths = np.diff(word_ends)
    for length in range(MIN_LETTERS, MAX_LETTERS + 1):
        own = np.flatnonzero((lengths == length) & (masks > 0))
        n_parts = (1 if length < LONG_WORD else 2) + 1
        for part in range(n_parts if len(own) else 0):
            first = np.uint64((length * 4 + part + 1) * int(_STEP) & _ALL)
            states = np.full(len(own), first, np.uint64)
            for k in range(part * length // n_parts, (part + 1) * length // n_parts):
                states = (states ^ letters[word_ends[own] + k].astype(np.uint64)) * _STEP
                states ^= states >> _SHIFT
            words.append(own)
            buckets.append(((states >> _SHIFT) & np.uint64(n_buckets - 1)).astype(np.int64))
    of_words, of_buckets = np.concatenate(words), np.concatenate(buckets)
    starts = np.zeros(n_buckets + 1, np.int64)
    np.cumsum(np.bincount(of_buckets, minlength=n_buckets), out=starts[1:])
    return starts, of_words[np.argsort(of_buckets, kind="stable")].astype(np.uint32)


@njit()
def _n_bits(bits: Any) -> Any:
    n = 0
    while bits:
        bits &= bits - np.uint32(1)
        n += 1
    return n


@njit()
def count_edits(a: Codes, a0: int, n: int, b: Codes, b0: int, m: int, most: int) -> int:
    """Return the edits between two words, an exchange of neighbours as one; -1 if too many.

    Too many are more than ``most``, where an exchange counts as two unless it is the only edit.
    """
    if abs(n - m) > most:
        return -1
    while n and m and a[a0] == b[b0]:
        a0, b0, n, m = a0 + 1, b0 + 1, n - 1, m - 1
    while n and m and a[a0 + n - 1] == b[b0 + m - 1]:
        n, m = n - 1, m - 1
    if not n or not m:
        return max(n, m)
    if n == m and n <= 2:
        if n == 2 and a[a0] == b[b0 + 1] and a[a0 + 1] == b[b0]:
            return 1
        return n if n <= most else -1
    if most < 2:
        return -1
    # two edits, with different letters at both ends: at each end one of them
    for drop_a, drop_b in ((1, 1), (1, 0), (0, 1)):
        if n - drop_a == m - drop_b and _differ_at_end(a, a0 + drop_a, b, b0 + drop_b, n - drop_a):
            return 2
        if _same(a, a0 + drop_a, n - drop_a - 1, b, b0 + drop_b, m - drop_b):
            return 2
        if _same(a, a0 + drop_a, n - drop_a, b, b0 + drop_b, m - drop_b - 1):
            return 2
    return -1


@njit()
def _differ_at_end(a: Codes, a0: Any, b: Codes, b0: Any, n: Any) -> Any:
    """Whether two words of n letters agree in all but the last."""
    return _same(a, a0, n - 1, b, b0, n - 1)


@njit()
def _same(a: Codes, a0: Any, n: Any, b: Codes, b0: Any, m: Any) -> Any:
    if n != m or n < 0:
        return False
    for k in range(n):  # noqa: SIM110 - numba compiles no generator
        if a[a0 + k] != b[b0 + k]:
            return False
    return True


@njit()
def find_nearest(
    word_ends: Ints, letters: Codes, masks: Uints, bucket_starts: Ints, buckets: Uints,
    text: Codes, start: int, end: int, found: Ints,
) -> int:  # fmt: skip
    """Find the words near that in ``text[start:end]``; return their number.

    ``found`` gets the words and their edits, (2, n), the fewest edits first, then by number.
    """
    mask, m, n = letter_set(text, start, end), end - start, 0
    if not mask:
        return 0
    n_buckets = len(bucket_starts) - 1
    for length in range(max(MIN_LETTERS, m - 2), m + 3):
        most = max_edits(length)
        if abs(length - m) > most:
            continue
        for part in range(most + 1):
            low = part * length // (most + 1)
            size = (part + 1) * length // (most + 1) - low
            for shift in range(-most, most + 1):
                first = start + low + shift
                # letters that come before and after the part change its position
                if abs(shift) + abs(m - length - shift) > most or first < start:
                    continue
                if first + size > end:
                    continue
                at = _bucket(text, first, first + size, part, length, n_buckets)
                for k in range(bucket_starts[at], bucket_starts[at + 1]):
                    n = _compare(
                        np.int64(buckets[k]), length, most, mask, word_ends, letters, masks, text,
                        start, m, found, n,
                    )  # fmt: skip
        if most == 1 and length == m:  # an exchange across the two parts leaves neither intact
            n = _find_exchanged(
                word_ends, letters, masks, bucket_starts, buckets, text, start, m, mask, found, n
            )
    return n


@njit()
def _find_exchanged(
    word_ends: Ints, letters: Codes, masks: Uints, bucket_starts: Ints, buckets: Uints,
    text: Codes, start: int, m: int, mask: Any, found: Ints, n: int,
) -> int:  # fmt: skip
    middle = m // 2
    begin = text[start : start + middle].copy()
    begin[middle - 1] = text[start + middle]
    at = _bucket(begin, 0, middle, 0, m, len(bucket_starts) - 1)
    for k in range(bucket_starts[at], bucket_starts[at + 1]):
        n = _compare(
            np.int64(buckets[k]), m, 1, mask, word_ends, letters, masks, text, start, m, found, n
        )
    return n


@njit()
def _compare(
    word: Any, length: Any, most: Any, mask: Any, word_ends: Ints, letters: Codes, masks: Uints,
    text: Codes, start: Any, m: Any, found: Ints, n: Any,
) -> Any:  # fmt: skip
    """Add a word to those found, in order, unless it has too many edits; return their number."""
    first = word_ends[word]
    if word_ends[word + 1] - first == length and _n_bits(masks[word] ^ mask) <= 2 * most:
        edits = count_edits(letters, first, length, text, start, m, most)
        if edits >= 0:
            n = _add(found, n, word, edits)
    return n


@njit()
def _add(found: Ints, n: int, word: int, edits: int) -> int:
    at = n
    for k in range(n - 1, -1, -1):
        if found[0, k] == word:
            return n
        if found[1, k] > edits or (found[1, k] == edits and found[0, k] > word):
            at = k
    if at == found.shape[1]:
        return n
    n = min(n + 1, found.shape[1])
    for k in range(n - 1, at, -1):
        found[0, k], found[1, k] = found[0, k - 1], found[1, k - 1]
    found[0, at], found[1, at] = word, edits
    return n
