"""Words of names and texts: their normal forms, and the numbers of these in a vocabulary.

The names index and the lexical index share the rules for single words (American spelling,
singulars, digits, Greek letters spelled out), so that a name is found in text where a search finds
it. In the names index the form of a numeral depends on its neighbours, too: *type I* and 一型 have
those of *type 1* and 1型.

The vocabulary of names is a hash table that gives each distinct token its number. Slots hold the
upper half of a token's hash and its number plus one; 0 is empty. Collisions go to the next slot. A
hit is compared with the letters of the token, so that different tokens never agree. Every token of
the vocabulary has the number of its normal form; names are sequences of such numbers. A token of a
text that is no token of a name is normalised when it is first seen, and kept in a table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from biograft.arrays import Int32s, Ints, Uints
from biograft.artifacts import check_outer_ends
from biograft.compute import njit
from biograft.text.tokens import GREEK, Codes, Hashes, Tokens, find_tokens, hash_word, join_texts

_SINGULARS = frozenset(
    """
    always ascites atlas biceps caries chaos cosmos diabetes facies forceps gas herpes lens measles
    menses mumps news pancreas pons pubes quadriceps rabies rickets scabies series shingles species
    tabes triceps yaws
    """.split()
)
_NO_OSIS = frozenset(
    """
    celluloses composes doses fructoses glucoses hoses lactoses maltoses noses overdoses poses
    purposes riboses roses sucroses
    """.split()
)


def singular(word: str) -> str:
    """Return the singular of an English plural; words that only look like one are unchanged.

    >>> [singular(w) for w in "diagnoses diseases abscesses arteries viruses diabetes".split()]
    ['diagnosis', 'disease', 'abscess', 'artery', 'virus', 'diabetes']
    """
    plain = word.isascii() and word.isalpha() and len(word) > 3 and word.endswith("s")
    if not plain or word.endswith(("ss", "us", "is")) or word in _SINGULARS:
        return word
    if word.endswith("es"):
        return _singular_of_es(word)
    return word[:-1]


def _singular_of_es(word: str) -> str:
    if word.endswith("ies"):
        return f"{word[:-3]}y" if len(word) > 4 else word[:-1]
    if word.endswith("itides"):
        return f"{word[:-3]}s"
    greek = word.endswith(("stases", "lyses", "theses"))
    if greek or (word.endswith("oses") and word not in _NO_OSIS):
        return f"{word[:-2]}is"
    hissing = word.endswith(("sses", "xes", "ches", "shes"))
    latin = word.endswith("uses") and not word.endswith(("auses", "ouses", "fuses"))
    if (hissing and not word.endswith("aches")) or latin:
        return word[:-2]
    return word[:-1]


_DIGRAPH = re.compile(
    # ae becomes e, but not in aero-, -ael and the Latin ending
    r"ae(?=[a-z])(?!r[oi]|l)"
    # oe only where it is one sound: not in gastroenteritis, leukoencephalopathy
    r"|oe(?=soph|stro|stra|dem|t(?:us|al))|(?<=c)oe(?=l[io])|(?<=rrh|.pn)oe(?=[ai])"
    r"|(?<=m)oe(?=[bo])",
    re.IGNORECASE,
)
_AMERICAN = tuple(
    (re.compile(pattern, re.IGNORECASE), american)
    for pattern, american in (
        (r"(tum|col|behavi|hum|od|harb|fav|vap|lab|neighb)ou(r)", r"\1o\2"),
        (r"(cent|fib|lit|met|tit|goit|calib)re(s?)\b", r"\1er\2"),
        (r"(?<=[a-z]i)s(?=ations?\b)", "z"),
        (r"(sul)ph", r"\1f"),
        (r"(leu)c(?=ocyt|open|oenc|em)", r"\1k"),
        (r"(alumin)i(um)\b", r"\1\2"),
    )
)


_MAY_BE_BRITISH = re.compile(r"[ao]e|[æœ]|our|[bt]re|isation|sulph|leuc|alumini", re.IGNORECASE)
"""A fast test that excludes most words."""


def british(word: str) -> str:
    """Convert British spelling to American: haemorrhage, oesophagus, tumour, fibre, sulphate."""
    if not _MAY_BE_BRITISH.search(word):
        return word
    for joined, parted in (("æ", "ae"), ("œ", "oe"), ("Æ", "Ae"), ("Œ", "Oe")):
        word = word.replace(joined, parted)
    word = _DIGRAPH.sub(_as_e, word)
    for pattern, american in _AMERICAN:
        word = pattern.sub(american, word)
    return word


def _as_e(match: re.Match[str]) -> str:
    return "E" if match[0][0].isupper() else "e"


ROMAN_NUMBERS = {
    name: str(value)
    for value, name in enumerate("i ii iii iv v vi vii viii ix x xi xii xiii".split(), 1)
}
"""Roman numerals, in lower case, with their digits."""

_MAY_CHANGE = re.compile(
    r"s$|[ao]e|[æœ]|our|re$|[cblt]res$|isation|sulph|leuc|alumini|^[ivx]+$", re.IGNORECASE
)
"""A fast test that excludes most words."""


_MAX_SHORT = 4
"""Words up to this length keep an *s*: in capitals they are acronyms, *HDL* is no *hdls*."""


def word_form(word: str) -> str:
    """Return the normal form of a lower-case word.

    >>> [word_form(word) for word in ("haemorrhages", "tumours", "iii", "arteries")]
    ['hemorrhage', 'tumor', '3', 'artery']
    """
    if not _MAY_CHANGE.search(word):
        return word
    if len(word) > 1 and word in ROMAN_NUMBERS:
        return ROMAN_NUMBERS[word]
    form = british(word)
    if len(form) > _MAX_SHORT:
        form = singular(form)
    return form if form == word else word_form(form)  # a form is its own form


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
    slots: Hashes,
    word_ends: Ints,
    known: Codes,
    key: Any,
    letters: Codes,
    start: Any,
    end: Any,
) -> Any:
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
    """Return the number of the word in ``letters[start:end]``, -1 of an unknown one.

    Args:
        slots: Hash table of the words.
        word_ends: End of each word in ``known``.
        known: Code points of all words.
        letters: Code points of the text.
        start: Start of the word in it.
        end: Its end.
    """
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
    slots: Hashes,
    word_ends: Ints,
    known: Codes,
    letters: Codes,
    ends: Ints,
    hashes: Hashes,
    stems: Hashes,
) -> tuple[Int32s, Int32s]:
    """Return the number of each token, and that of its stem; -1 for unknown ones.

    Args:
        slots: Hash table of the words.
        word_ends: End of each word in ``known``.
        known: Code points of all words.
        letters: Code points of the tokens.
        ends: End of each token.
        hashes: Hash of each token; 0: it is not looked up.
        stems: Hash of the singular of each token; 0: it has none.
    """
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
    slots: Hashes,
    word_ends: Ints,
    known: Codes,
    keys: Hashes,
    n_words: int,
    letters: Codes,
    ends: Ints,
    hashes: Hashes,
) -> tuple[Int32s, int]:
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
        """Return the numbers of parts of a text, as they are written.

        Args:
            codes: Code points of texts.
            starts: Start of each part.
            ends: End of each part.
        """
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
            self._slots,
            self._word_ends,
            self._letters,
            self._keys,
            self.n_words,
            letters,
            ends,
            hashes,
        )
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


_DIGITS = (*"123456789", "10")
_ROMAN = ("i", "v", "x")
_KINDS = tuple(
    "type types grade grades stage stages class classes phase phases "
    "factor factors group groups".split()
)
_HAN_DIGITS, _TEN = tuple("一二三四五六七八九"), ("十",)
_HAN_KINDS = tuple("型期级度")
NUMERALS = (*_DIGITS, *_ROMAN, *_KINDS, *_HAN_DIGITS, *_TEN, *_HAN_KINDS)
"""Tokens that numerals are recognised by: the first of every vocabulary, in this order."""
_FIRST_ROMAN = len(_DIGITS)
_FIRST_KIND = _FIRST_ROMAN + len(_ROMAN)
_FIRST_HAN = _FIRST_KIND + len(_KINDS)
_FIRST_HAN_KIND = _FIRST_HAN + len(_HAN_DIGITS) + len(_TEN)
_OF_ROMAN = tuple(int(ROMAN_NUMBERS[letter]) - 1 for letter in _ROMAN)

_MIN_KNOWN_SLOTS = 1 << 12
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
def hash_surfaces(hashes: Hashes) -> Uints:
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
    n_slots = max(_MIN_KNOWN_SLOTS, _power_of_two(4 * len(hashes)))
    keys, values = np.zeros(n_slots, np.uint64), np.zeros(n_slots, np.int32)
    _fill(keys, values, hashes, forms)
    return _Known(keys, values, hashes, forms)


class TokenForms:
    """Gives the tokens of texts the numbers of their forms.

    Args:
        vocabulary: Words of the names.
        forms: Form of each word.
    """

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
    """Return the positions of the words whose form is another word, and these forms.

    A word with a Greek letter has none: read as a text, it would be several words.
    """
    plain = ((n, word) for n, word in enumerate(words) if GREEK.keys().isdisjoint(word))
    forms = [(n, word_form(word)) for n, word in plain if word.isalnum()]
    changed = [(n, form) for n, form in forms if form != words[n]]
    return [n for n, _ in changed], [form for _, form in changed]


def _letters(tokens: Tokens, at: int) -> str:
    start = int(tokens.ends[at - 1]) if at else 0
    codes: Codes = tokens.letters[start : tokens.ends[at]]
    return codes.tobytes().decode("utf-32-le", "surrogatepass")
