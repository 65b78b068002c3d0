"""The vocabulary of names: a hash table that gives each distinct token its number.

Slots hold the upper half of a token's hash and its number plus one; 0 is empty. Collisions go
to the next slot. A hit is compared with the letters of the token, so that different tokens never
agree.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from biograft.artifacts import check_outer_ends
from biograft.compute import njit
from biograft.text.tokens import Codes, Hashes, Ints, Tokens, hash_word

Uints = npt.NDArray[np.uint32]
Int32s = npt.NDArray[np.int32]

_HALF, _LOW, _ONE = np.uint64(32), np.uint64(0xFFFFFFFF), np.uint64(1)
T = TypeVar("T", bound=np.generic)

_MIN_SLOTS = 16
_MAX_LOAD = 2
"""Slots per token at least: fewer make look-ups slow."""


class Vocabulary(NamedTuple):
    """Distinct tokens, numbered from 0."""

    slots: Hashes
    """(a power of two,)"""
    word_ends: Ints
    """End of each token in ``letters``; the first number is 0, where the first token begins."""
    letters: Codes

    def check(self) -> None:
        """Refuse arrays that do not belong together; a look-up checks what it reads of them."""
        n_words, n_slots = len(self.word_ends) - 1, len(self.slots)
        check_outer_ends("word_ends", self.word_ends, len(self.letters))
        if n_slots < _MIN_SLOTS or n_slots & (n_slots - 1):
            raise ValueError(f"slots: expected a power of two, found {n_slots}")
        if n_slots < _MAX_LOAD * n_words:
            raise ValueError(f"slots: expected {_MAX_LOAD} a token, found {n_slots} of {n_words}")


@njit()
def _find(
    slots: Hashes, word_ends: Ints, known: Codes, key: Any, letters: Codes, start: Any,
    end: Any,
) -> Any:  # fmt: skip
    """Return the number of a token, -1 of an unknown one."""
    mask, tag = np.uint64(len(slots) - 1), key >> _HALF
    at = (key >> _ONE) & mask  # all arithmetic is unsigned: mixed kinds take five times as long
    n_read = 0
    while slots[at]:
        slot = slots[at]
        if slot >> _HALF == tag:
            word = np.int64(slot & _LOW) - 1
            if word < 0 or word >= len(word_ends) - 1:
                raise ValueError("slots: numbers out of range")
            first = word_ends[word]
            if word_ends[word + 1] - first == end - start:
                if first < 0 or first + end - start > len(known):
                    raise ValueError("word_ends: positions out of range")
                is_same = True
                for k in range(end - start):
                    if known[first + k] != letters[start + k]:
                        is_same = False
                        break
                if is_same:
                    return word
        at = (at + _ONE) & mask
        n_read += 1
        if n_read > len(slots):
            raise ValueError("slots: there are too many tokens")
    return -1


@njit()
def find_word(
    slots: Hashes, word_ends: Ints, known: Codes, letters: Codes, start: int, end: int
) -> Any:
    """Return the number of the word in ``letters[start:end]``, -1 of an unknown one."""
    return _find(slots, word_ends, known, hash_word(letters, start, end), letters, start, end)


@njit(inline="always")
def _insert(slots: Hashes, key: Any, word: int) -> None:
    """Put a new token into the table."""
    mask = np.uint64(len(slots) - 1)
    at = (key >> _ONE) & mask
    while slots[at]:
        at = (at + _ONE) & mask
    slots[at] = (key >> _HALF << _HALF) | np.uint64(word + 1)


@njit(work=lambda *arrays: 10 * len(arrays[4]))
def look_up(
    slots: Hashes, word_ends: Ints, known: Codes, letters: Codes, ends: Ints, hashes: Hashes,
    stems: Hashes,
) -> tuple[Int32s, Int32s]:  # fmt: skip
    """Return the number of each token, and that of its stem; -1 for unknown ones."""
    words, stem_words = np.empty(len(ends), np.int32), np.empty(len(ends), np.int32)
    start: Any = np.int64(0)
    for n in range(len(ends)):
        end = ends[n]
        word: Any = np.int64(-1)
        stem: Any = np.int64(-1)
        if hashes[n]:
            word = _find(slots, word_ends, known, hashes[n], letters, start, end)
        if stems[n]:
            stem = _find(slots, word_ends, known, stems[n], letters, start, end - 1)
        words[n], stem_words[n] = word, stem
        start = end
    return words, stem_words


@njit()
def _add(
    slots: Hashes, word_ends: Ints, known: Codes, keys: Hashes, n_words: int, letters: Codes,
    ends: Ints, hashes: Hashes,
) -> tuple[Int32s, int]:  # fmt: skip
    """Number the tokens of names, -1 for separators; the arrays have space for new ones."""
    words = np.empty(len(ends), np.int32)
    start: Any = np.int64(0)
    for n in range(len(ends)):
        end = ends[n]
        word: Any = np.int64(-1)
        if hashes[n]:
            word = _find(slots, word_ends, known, hashes[n], letters, start, end)
            if word < 0:
                word = n_words
                first = word_ends[n_words]
                for k in range(end - start):
                    known[first + k] = letters[start + k]
                keys[n_words] = hashes[n]
                n_words += 1
                word_ends[n_words] = first + end - start
                _insert(slots, hashes[n], word)
        words[n] = word
        start = end
    return words, n_words


@njit(work=lambda codes, starts, ends: 50 * len(starts))
def _cut(codes: Codes, starts: Ints, ends: Ints) -> tuple[Codes, Ints, Hashes]:
    """Return the letters of parts of a text one after the other, where each ends, and its hash."""
    letters = np.empty(np.sum(ends - starts), np.uint32)
    own_ends, hashes = np.empty(len(starts), np.int64), np.empty(len(starts), np.uint64)
    at = 0
    for n in range(len(starts)):
        size = ends[n] - starts[n]
        letters[at : at + size] = codes[starts[n] : ends[n]]
        hashes[n] = hash_word(letters, at, at + size)
        at += size
        own_ends[n] = at
    return letters, own_ends, hashes


@njit()
def _fill_slots(keys: Hashes, n_slots: int) -> Hashes:
    """Build the table of distinct tokens by their hashes."""
    slots = np.zeros(n_slots, np.uint64)
    for n in range(len(keys)):
        _insert(slots, keys[n], n)
    return slots


class VocabularyBuilder:
    """Numbers the tokens of names in the order of their first occurrence."""

    def __init__(self) -> None:
        self.n_words = 0
        self._slots: Hashes = np.zeros(_MIN_SLOTS, np.uint64)
        self._word_ends: Ints = np.zeros(1, np.int64)
        self._letters: Codes = np.zeros(0, np.uint32)
        self._keys: Hashes = np.zeros(0, np.uint64)

    def add(self, tokens: Tokens) -> Int32s:
        """Return the number of each token; -1 for separators."""
        return self._number(tokens.letters, tokens.ends, tokens.hashes)

    def add_parts(self, codes: Codes, starts: Ints, ends: Ints) -> Int32s:
        """Return the numbers of parts of a text, as they are written."""
        return self._number(*_cut(codes, starts, ends))

    def _number(self, letters: Codes, ends: Ints, hashes: Hashes) -> Int32s:
        most = self.n_words + len(ends)
        if _MAX_LOAD * most > len(self._slots):
            self._slots = _fill_slots(self._keys[: self.n_words], _power_of_two(_MAX_LOAD * most))
        used = int(self._word_ends[self.n_words])
        self._letters = _with_space(self._letters, used + len(letters))
        self._word_ends = _with_space(self._word_ends, most + 1)
        self._keys = _with_space(self._keys, most)
        words: Int32s
        words, self.n_words = _add(
            self._slots, self._word_ends, self._letters, self._keys, self.n_words,
            letters, ends, hashes,
        )  # fmt: skip
        return words

    def texts(self, words: Ints) -> list[str]:
        """Return the letters of some of the tokens."""
        used = int(self._word_ends[self.n_words])
        text = self._letters[:used].tobytes().decode("utf-32-le", "surrogatepass")
        firsts, ends = self._word_ends[words].tolist(), self._word_ends[words + 1].tolist()
        return [text[first:end] for first, end in zip(firsts, ends, strict=True)]

    def finish(self, order: Ints) -> Vocabulary:
        """Return the vocabulary of some of the tokens, in this order."""
        n = len(order)
        firsts = self._word_ends[: self.n_words][order]
        lengths = self._word_ends[1 : self.n_words + 1][order] - firsts
        word_ends = np.zeros(n + 1, np.int64)
        np.cumsum(lengths, out=word_ends[1:])
        sources = np.repeat(firsts - word_ends[:-1], lengths)
        letters = self._letters[sources + np.arange(len(sources))]
        keys = self._keys[: self.n_words][order]
        slots = _fill_slots(keys, _power_of_two(max(_MIN_SLOTS, _MAX_LOAD * n)))
        return Vocabulary(slots, word_ends, letters)


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


def _with_space(array: npt.NDArray[T], size: int) -> npt.NDArray[T]:
    """Return an array with space for ``size`` numbers, twice that if it must grow."""
    if len(array) >= size:
        return array
    grown = np.zeros(2 * size, array.dtype)
    grown[: len(array)] = array
    return grown
