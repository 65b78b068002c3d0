"""Normal forms of the tokens of names and texts, by number.

Every token of the vocabulary of a names index has the number of its normal form (``word_form``);
names are sequences of such numbers. The form of a numeral depends on its neighbours: *type I* and
一型 have those of *type 1* and 1型. A token of a text that is no token of a name is normalised when
it is first seen, and kept in a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.compute import njit
from biograft.text.tokens import Codes, Hashes, Ints, Tokens, find_tokens, join_texts
from biograft.text.vocabulary import Int32s, Vocabulary, look_up
from biograft.text.word_forms import ROMAN_NUMBERS, word_form

_DIGITS = (*"123456789", "10")
_ROMAN = ("i", "v", "x")
_KINDS = tuple(
    "type types grade grades stage stages class classes phase phases factor factors group groups"
    .split()
)  # fmt: skip
_HAN_DIGITS, _TEN = tuple("一二三四五六七八九"), ("十",)
_HAN_KINDS = tuple("型期级度")
NUMERALS = (*_DIGITS, *_ROMAN, *_KINDS, *_HAN_DIGITS, *_TEN, *_HAN_KINDS)
"""Tokens that numerals are recognised by: the first of every vocabulary, in this order."""
_FIRST_ROMAN = len(_DIGITS)
_FIRST_KIND = _FIRST_ROMAN + len(_ROMAN)
_FIRST_HAN = _FIRST_KIND + len(_KINDS)
_FIRST_HAN_KIND = _FIRST_HAN + len(_HAN_DIGITS) + len(_TEN)
_OF_ROMAN = tuple(int(ROMAN_NUMBERS[letter]) - 1 for letter in _ROMAN)

_MIN_SLOTS = 1 << 12
_MAX_KNOWN = 1 << 20
"""Tokens of texts that are kept; more begin anew."""
_MIN_LENGTH = 2
"""Shorter words are their own form."""


def numeral_tokens() -> Tokens:
    """Return the tokens of all ``NUMERALS``, with separators between them."""
    return find_tokens(join_texts(NUMERALS))


@njit(work=lambda words, *_: 4 * len(words))
def read_numerals(words: Int32s) -> None:
    """Replace numerals by digits where a kind is numbered: *type I*, *factor X*, 二型, II 型.

    ``words`` are numbers of the vocabulary, -1 for separators and unknown tokens.
    """
    for n in range(len(words)):
        word = words[n]
        if word < _FIRST_ROMAN or word >= _FIRST_HAN_KIND:
            continue
        before = words[n - 1] if n else -1
        after = words[n + 1] if n + 1 < len(words) else -1
        is_han_kind = _FIRST_HAN_KIND <= after < _FIRST_HAN_KIND + 4
        if word < _FIRST_KIND:
            if is_han_kind or _FIRST_KIND <= before < _FIRST_HAN:
                words[n] = _OF_ROMAN[word - _FIRST_ROMAN]
        elif word >= _FIRST_HAN and is_han_kind and not _FIRST_HAN <= before < _FIRST_HAN_KIND:
            words[n] = word - _FIRST_HAN  # the digits come first


@njit(work=lambda words, *_: 4 * len(words))
def _to_forms(words: Int32s, stems: Int32s, forms: Int32s) -> int:
    """Replace tokens by the numbers of their forms; return how many tokens are unknown."""
    n_unknown = 0
    for n in range(len(words)):
        if words[n] >= 0:
            words[n] = forms[words[n]]
        n_unknown += words[n] < 0
        if stems[n] >= 0:
            stems[n] = forms[stems[n]]
    return n_unknown


@njit(work=lambda *arrays: 8 * len(arrays[4]))
def _look_up_known(
    keys: Hashes, values: Int32s, hashes: Hashes, ends: Ints, words: Int32s, new: Ints
) -> int:
    """Set the forms of unknown tokens that are in the table; collect those that are not."""
    mask, n_new, start = np.uint64(len(keys) - 1), 0, 0
    for n in range(len(words)):
        length = ends[n] - start
        start = ends[n]
        if words[n] >= 0 or length < _MIN_LENGTH or not hashes[n]:
            continue
        at: Any = (hashes[n] >> np.uint64(1)) & mask
        while keys[at] and keys[at] != hashes[n]:
            at = (at + np.uint64(1)) & mask
        if keys[at]:
            words[n] = values[at]
        else:
            new[n_new] = n
            n_new += 1
    return n_new


@njit(work=lambda *arrays: 4 * len(arrays[2]))
def _fill(keys: Hashes, values: Int32s, hashes: Hashes, forms: Int32s) -> None:
    mask = np.uint64(len(keys) - 1)
    for n in range(len(hashes)):
        at: Any = (hashes[n] >> np.uint64(1)) & mask
        while keys[at] and keys[at] != hashes[n]:
            at = (at + np.uint64(1)) & mask
        keys[at], values[at] = hashes[n], forms[n]


@njit(work=lambda words, *_: 4 * len(words))
def hash_surfaces(hashes: Hashes) -> npt.NDArray[np.uint32]:
    """Return a hash of the tokens of each name, as written; a token 0 separates names."""
    surfaces = np.zeros(len(hashes) + 1, np.uint32)
    n, state = 0, np.uint64(0)
    for key in hashes:
        if key:
            state = (state ^ key) * np.uint64(0xD6E8FEB86659FD93)
            state ^= state >> np.uint64(29)
        else:
            surfaces[n] = np.uint32(state >> np.uint64(32))
            n, state = n + 1, np.uint64(0)
    surfaces[n] = np.uint32(state >> np.uint64(32))
    return surfaces[: n + 1]


@lru_cache(maxsize=1 << 14)
def surface_of(text: str) -> int:
    """Return the hash of a text's tokens, as written."""
    return int(hash_surfaces(find_tokens(join_texts([text])).hashes)[0])


class _Known(NamedTuple):
    """Forms of tokens that are in no name: an open hash table, -1 for no form of a name."""

    keys: Hashes
    values: Int32s
    hashes: Hashes
    """The same without gaps."""
    forms: Int32s


def _known(hashes: Hashes, forms: Int32s) -> _Known:
    n_slots = max(_MIN_SLOTS, 1 << (4 * len(hashes) - 1).bit_length()) if len(hashes) else 1 << 12
    keys, values = np.zeros(n_slots, np.uint64), np.zeros(n_slots, np.int32)
    _fill(keys, values, hashes, forms)
    return _Known(keys, values, hashes, forms)


class TokenForms:
    """Gives the tokens of texts the numbers of their forms."""

    def __init__(self, vocabulary: Vocabulary, forms: Int32s) -> None:
        self._vocabulary, self._forms = vocabulary, forms
        self._known = _known(np.zeros(0, np.uint64), np.zeros(0, np.int32))

    def of(self, tokens: Tokens) -> tuple[Int32s, Int32s]:
        """Return the form of each token, and that of its stem; -1 where no name has it."""
        words, stems = look_up(
            *self._vocabulary, tokens.letters, tokens.ends, tokens.hashes, tokens.stems
        )
        read_numerals(words)
        if _to_forms(words, stems, self._forms):
            self._set_unknown(tokens, words)
        stems[stems == words] = -1  # nothing is found twice
        return words, stems

    def _set_unknown(self, tokens: Tokens, words: Int32s) -> None:
        """Set the forms of tokens that are in no name: *fractures* where only *fracture* is."""
        known = self._known  # another thread may replace it
        new = np.empty(len(words), np.int64)
        n = _look_up_known(known.keys, known.values, tokens.hashes, tokens.ends, words, new)
        if not n:
            return
        hashes, first, number = np.unique(
            tokens.hashes[new[:n]], return_index=True, return_inverse=True
        )
        forms = self._normalised([_letters(tokens, at) for at in new[first].tolist()])
        words[new[:n]] = forms[number]
        if len(known.hashes) + len(hashes) > _MAX_KNOWN:
            known = _known(hashes[:0], forms[:0])
        self._known = _known(
            np.concatenate([known.hashes, hashes]), np.concatenate([known.forms, forms])
        )

    def _normalised(self, words: list[str]) -> Int32s:
        """Return the number of the form of each word, -1 of those that no name has."""
        numbers = np.full(len(words), -1, np.int32)
        changed, forms = changed_forms(words)
        if forms:
            tokens = find_tokens(join_texts(forms))
            found, _ = look_up(
                *self._vocabulary, tokens.letters, tokens.ends, tokens.hashes, tokens.stems
            )
            found = found[tokens.hashes > 0]
            numbers[changed] = np.where(found >= 0, self._forms[found], -1)
        return numbers


def changed_forms(words: Sequence[str]) -> tuple[list[int], list[str]]:
    """Return the positions of the words whose form is another word, and these forms."""
    forms = [(n, word_form(word)) for n, word in enumerate(words) if word.isalnum()]
    changed = [(n, form) for n, form in forms if form != words[n]]
    return [n for n, _ in changed], [form for _, form in changed]


def _letters(tokens: Tokens, at: int) -> str:
    start = int(tokens.ends[at - 1]) if at else 0
    codes: Codes = tokens.letters[start : tokens.ends[at]]
    return codes.tobytes().decode("utf-32-le", "surrogatepass")
