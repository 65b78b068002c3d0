"""Corrections of the words of a text, and the names that they lead to, in compiled code.

A word of the text that is neither in the vocabulary of the names nor ordinary may be a misspelt
word, or two words without a blank; two neighbours may be one word with a blank in it. Each is
replaced by words of the vocabulary, and the trie of names is walked as usual.

A word of 5 to 8 letters may have one edit: a letter inserted, deleted or replaced, or two
neighbours exchanged. A longer word may have two, where an exchange counts as two letters replaced,
or one exchange. The length is that of the vocabulary's word. With k edits at least one of k + 1
parts of a word stays intact, so that the words that share a part are compared. :class:`WordFinder`
keeps three numbers for each word: they are computed in a fraction of a second and never stored.

Ordinary words are those of the names of terminologies and of public abstracts; those that only
general dictionaries have may be errors within a longer name (*hart attack*), but not alone;
ordinary pairs of Chinese characters stand in public medical questions. SOURCES.txt says which, with
their licences, and ``benchmarks/ordinary_words.py`` writes the files again.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from biograft.arrays import Flags, Int32s, Ints, Uints
from biograft.artifacts import check_ends
from biograft.compute import njit
from biograft.text.name_rules import COMMON_WORDS, FUNCTION_WORDS
from biograft.text.names_index import (
    NameArrays,
    TokensRead,
    Trie,
    child_by,
    collect,
    has_rows,
    node_before,
)
from biograft.text.tokens import Codes, Hashes, hash_words, positions_in
from biograft.text.vocabulary import find_word

WORDS, PAIRS = "english_words.txt.gz", "chinese_pairs.txt.gz"
WORD_PAIRS = "chinese_word_pairs.txt.gz"
_PAIR_SHIFT = np.uint64(32)


@cache
def ordinary_words() -> Hashes:
    """Return the hashes of the words of biomedical texts and names, sorted; short ones in part."""
    common = read_data(WORDS).partition("\n\n")[0].split()
    return np.sort(hash_words([*{*common, *COMMON_WORDS, *FUNCTION_WORDS}]))


@cache
def english_words() -> frozenset[str]:
    """Return the words of English text and dictionaries; short ones in part."""
    return frozenset({*read_data(WORDS).split(), *COMMON_WORDS, *FUNCTION_WORDS})


def is_among(keys: Hashes, known: Hashes) -> Flags:
    """Return which keys are among known ones.

    Args:
        keys: Keys.
        known: Keys in ascending order, at least one.
    """
    return positions_in(keys, known) >= 0


@cache
def ordinary_pairs() -> Hashes:
    """Return the pairs of neighbouring Chinese characters of ordinary text, sorted."""
    codes = np.frombuffer(read_data(PAIRS).replace("\n", "").encode("utf-32-le"), np.dtype("<u4"))
    return np.sort(pair_keys(codes[0::2], codes[1::2]))


def pair_keys(first: Codes, second: Codes) -> Hashes:
    """Return a number for each pair of characters.

    Args:
        first: Code point of the first character of each pair.
        second: Code point of the second.
    """
    return first.astype(np.uint64) << _PAIR_SHIFT | second.astype(np.uint64)


def read_data(name: str) -> str:
    """Return the text of a file of this package."""
    return gzip.decompress((files(__package__) / name).read_bytes()).decode()


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
    """Offset behind each word in ``letters``."""
    letters: Codes
    """Characters of all words, in one array."""
    masks: Uints
    """The set of the letters of each word, in 32 bits; 0 for a word that is not searched."""
    bucket_starts: Ints
    """Offset of each bucket in ``buckets``."""
    buckets: Uints
    """Numbers of the words, grouped by bucket."""

    @classmethod
    def build(cls, word_ends: Ints, letters: Codes) -> WordFinder:
        """Build from the words of a vocabulary; those with digits or punctuation are left out.

        Args:
            word_ends: End of each word in ``letters``.
            letters: Code points of the words.
        """
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
        n = find_nearest(self, codes, 0, len(codes), found)
        return [(int(found[0, k]), int(found[1, k])) for k in range(n)]


@njit()
def is_letter(code: Any) -> Any:
    """Whether a folded character is a letter: those of ASCII, and all beyond Latin-1 symbols."""
    return _LETTER_A <= code <= _LETTER_Z or code >= _LETTERS


@njit()
def letter_set(letters: Codes, start: int, end: int) -> Any:
    """Return the set of the letters of a word in 32 bits; 0 if it is no word of letters.

    Args:
        letters: Code points.
        start: Start of the word.
        end: Its end.
    """
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

    Args:
        a: Code points of the first word.
        a0: Its start.
        n: Its length.
        b: Code points of the second word.
        b0: Its start.
        m: Its length.
        most: Largest number of edits.
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
        if n - drop_a == m - drop_b and _same(
            a, a0 + drop_a, n - drop_a - 1, b, b0 + drop_b, m - drop_b - 1
        ):
            return 2
        if _same(a, a0 + drop_a, n - drop_a - 1, b, b0 + drop_b, m - drop_b):
            return 2
        if _same(a, a0 + drop_a, n - drop_a, b, b0 + drop_b, m - drop_b - 1):
            return 2
    return -1


@njit()
def _same(a: Codes, a0: Any, n: Any, b: Codes, b0: Any, m: Any) -> Any:
    if n != m or n < 0:
        return False
    for k in range(n):  # noqa: SIM110 - numba compiles no generator
        if a[a0 + k] != b[b0 + k]:
            return False
    return True


@njit()
def find_nearest(finder: WordFinder, text: Codes, start: int, end: int, found: Ints) -> int:
    """Find the words near that in ``text[start:end]``; return their number.

    Args:
        finder: Known words, by their parts.
        text: Code points of the text.
        start: Start of the word.
        end: Its end.
        found: Gets the words and their edits, (2, n), the fewest edits first, then by number.
    """
    mask, m, n = letter_set(text, start, end), end - start, 0
    if not mask:
        return 0
    bucket_starts, buckets = finder.bucket_starts, finder.buckets
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
                    word = np.int64(buckets[k])
                    n = _compare(finder, word, length, most, mask, text, start, m, found, n)
        if most == 1 and length == m:  # an exchange across the two parts leaves neither intact
            middle = m // 2
            begin = text[start : start + middle].copy()
            begin[middle - 1] = text[start + middle]
            at = _bucket(begin, 0, middle, 0, m, n_buckets)
            for k in range(bucket_starts[at], bucket_starts[at + 1]):
                word = np.int64(buckets[k])
                n = _compare(finder, word, m, 1, mask, text, start, m, found, n)
    return n


@njit()
def _compare(
    finder: WordFinder,
    word: Any,
    length: Any,
    most: Any,
    mask: Any,
    text: Codes,
    start: Any,
    m: Any,
    found: Ints,
    n: Any,
) -> Any:
    """Add a word to those found, in order, unless it has too many edits; return their number."""
    first = finder.word_ends[word]
    if finder.word_ends[word + 1] - first != length:
        return n
    if _n_bits(finder.masks[word] ^ mask) > 2 * most:
        return n
    edits = count_edits(finder.letters, first, length, text, start, m, most)
    return n if edits < 0 else _add(found, n, word, edits)


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


_MIN_TEXT, _MIN_HALF = MIN_LETTERS - 1, 3
"""Letters of a word of the text that may be misspelt, and of either of two that stand together."""
_MIN_JOINED, _MIN_PIECE, _SHORT = 6, 2, 4
"""Letters of a word with a blank in it, and of its parts; ordinary words are at least this long."""
_MAX_BEFORE = 12
"""Words before a corrected one that may belong to its name."""
_MAX_CORRECTED, _LONG_NAME = 2, 4
"""Most corrected words of a name; names with fewer words than ``_LONG_NAME`` have one."""
_ENDINGS = (
    "itis itides, oma omas omata, osis oses, emia aemia, uria, pathy pathies, algia, ectomy, "
    "otomy, ostomy, cele celes, cyte cytes, penia, philia, plasia, trophy, gram, graphy, scopy, "
    "ism ismus isms, megaly, stenosis, sclerosis, malacia, ptosis, rrhea, rrhage, plegia, paresis, "
    "phasia, phagia, phonia, lysis, oid, genic, tropia, phoria, derma, tome tomes, cide, odynia, "
    "blast blasts, blastoma, sarcoma, carcinoma, adenoma, spasm, itic, otic"
).split(",")
"""Endings of words of one kind each, never corrected into one of another kind."""


def _padded(words: Sequence[str]) -> Ints:
    """Return the letters of words, a row each, with 0 behind."""
    rows = np.zeros((len(words), max(map(len, words)) + 1), np.int64)
    for row, word in zip(rows, words, strict=True):
        row[: len(word)] = [*map(ord, word)]
    return rows


_BEGINNINGS = _padded(
    "hyper hypo inter intra macro micro de re ab ad anti ante sub sup ecto endo endo exo endo epi "
    "hemo homo peri para pre per anti auto iso aniso".split()
)
"""Pairs of beginnings that are never corrected into each other."""
_ENDING_ROWS = _padded([word[::-1] for kind in _ENDINGS for word in kind.split()])
_ENDING_KINDS = np.array([n for n, kind in enumerate(_ENDINGS) for _ in kind.split()])
_KEYS = np.array([*map(ord, "qwertyuiop asdfghjkl zxcvbnm")])
_MIN_FIRST = 6
"""Letters of a word whose first letter may be wrong."""
_PER_WORD = 2 * MAX_NEAREST + 2 * MAX_LETTERS
_N_CORRECT, _TOP = 1 << 16, np.uint64(48)
"""Words without corrections that are kept, at the upper bits of their hashes."""
_FEW_TOKENS, _NO_OUTLINES = 2000, np.zeros(0, np.bool_)
"""Outlines of the words are computed for more tokens only."""
_A, _C, _I, _L, _S, _U = map(ord, "acilsu")


class Corrections(NamedTuple):
    """Possible corrections of the words of a text: (corrections,) each, by position."""

    starts: Ints
    """Offsets of the corrections of each token, one more than there are tokens."""
    columns: Ints
    """(4, corrections): a form, the form after it or -1, tokens replaced, edits."""


class Corrector:
    """Finds what the words of texts may be misspellings of.

    Words that have no corrections are kept, by their hashes, since texts repeat them. Texts without
    a word that may be misspelt need no compiled loop.
    """

    def __init__(self, names: NameArrays) -> None:
        # the compiled loops below read the letters of every word, wherever it says that they are
        check_ends("word_ends", names.word_ends, len(names.letters))
        self._names = names
        self._correct = np.zeros(_N_CORRECT, np.uint64)

    def find(self, read: TokensRead) -> Corrections | None:
        """Find the corrections of the tokens of texts; None if there are none."""
        tokens, words, stems = read
        letters, ends, hashes = tokens.letters, tokens.ends, tokens.hashes
        unknown, begins = _find_unknown(ends, hashes, words, stems, self._correct)
        _, first, kind = np.unique(hashes[unknown], return_index=True, return_inverse=True)
        distinct = hashes[unknown[first]]
        starts, columns = self._suggest(read, unknown[first], begins[first])
        correct = distinct[starts[1:] == starts[:-1]]
        self._correct[correct >> _TOP] = correct
        joined = self._joined(letters, ends, hashes)
        if not columns.shape[1] and not joined.shape[1]:
            return None
        counts = np.zeros(len(ends) + 1, np.int64)
        counts[unknown + 1] = (starts[1:] - starts[:-1])[kind]
        counts[joined[0] + 1] += 1
        all_starts = np.cumsum(counts)
        return Corrections(all_starts, _spread(all_starts, unknown, kind, starts, columns, joined))

    def _suggest(self, read: TokensRead, at: Ints, begins: Ints) -> tuple[Ints, Ints]:
        """Return the corrections of distinct words: where those of each begin, and the columns."""
        tokens, ordinary = read.tokens, ordinary_words()
        wrong = ~is_among(tokens.hashes[at], ordinary)
        wrong &= (tokens.stems[at] == 0) | ~is_among(tokens.stems[at], ordinary)
        starts = np.zeros(len(at) + 1, np.int64)
        if not wrong.any():
            return starts, np.empty((4, 0), np.int64)
        some, columns = _suggest(
            tokens.letters,
            begins[wrong],
            tokens.ends[at[wrong]],
            self._names[:3],
            self._names.forms,
            self._finder,
        )
        counts = np.zeros(len(at), np.int64)
        counts[wrong] = some[1:] - some[:-1]
        np.cumsum(counts, out=starts[1:])
        return starts, columns

    def _joined(self, letters: Codes, ends: Ints, hashes: Hashes) -> Ints:
        """Return neighbours that are one word: (position, form)."""
        outlines = self._outlines if len(ends) > _FEW_TOKENS else _NO_OUTLINES
        joined: Ints = _find_joined(letters, ends, self._names[:3], self._names.forms, outlines)
        at = joined[0]
        if not len(at):
            return joined
        lengths = np.diff(ends, prepend=0)
        is_meant = np.zeros(len(at), np.bool_)  # "a typical", "in fusion": the blank is meant
        for side in (at, at + 1):
            is_meant |= (lengths[side] < _SHORT) & is_among(hashes[side], ordinary_words())
        kept: Ints = joined[:, ~is_meant]
        return kept

    @cached_property
    def _finder(self) -> WordFinder:
        return WordFinder.build(self._names.word_ends, self._names.letters)

    @cached_property
    def _outlines(self) -> Flags:
        outlines: Flags = _find_outlines(self._names.word_ends, self._names.letters)
        return outlines


@njit(work=lambda ends, *_: 4 * len(ends))
def _find_unknown(
    ends: Ints, hashes: Hashes, words: Int32s, stems: Int32s, correct: Hashes
) -> tuple[Ints, Ints]:
    """Return the positions of words that may be misspelt, and where their letters begin."""
    at, begins = np.empty(len(ends), np.int64), np.empty(len(ends), np.int64)
    n, start = 0, np.int64(0)
    for k in range(len(ends)):
        length, start = ends[k] - start, ends[k]
        is_new = words[k] < 0 and stems[k] < 0 and _MIN_TEXT <= length <= MAX_LETTERS
        if is_new and correct[hashes[k] >> _TOP] != hashes[k]:
            at[n], begins[n] = k, start - length
            n += 1
    return at[:n].copy(), begins[:n].copy()


@njit(work=lambda all_starts, unknown, *_: int(8 * all_starts[-1]) + len(unknown))
def _spread(
    all_starts: Ints, unknown: Ints, kind: Ints, starts: Ints, columns: Ints, joined: Ints
) -> Ints:
    """Give each occurrence of a word its corrections, and each pair its joined word."""
    out = np.empty((4, all_starts[-1]), np.int64)
    for n in range(len(unknown)):
        at = all_starts[unknown[n]]
        for k in range(starts[kind[n]], starts[kind[n] + 1]):
            for row in range(4):
                out[row, at] = columns[row, k]
            at += 1
    for n in range(joined.shape[1]):  # behind those of the first word alone
        at = all_starts[joined[0, n] + 1] - 1
        out[0, at], out[1, at], out[2, at], out[3, at] = joined[1, n], -1, 2, 1
    return out


def _suggest_work(letters: Codes, begins: Ints, *others: Any) -> int:
    """Return the steps of ``_suggest``: a large vocabulary has many words near another."""
    finder: WordFinder = others[-1]
    return len(begins) * (200 + len(finder.buckets) // 200)


@njit(work=_suggest_work)
def _suggest(
    letters: Codes, begins: Ints, ends: Ints, vocabulary: Any, forms: Int32s, finder: WordFinder
) -> tuple[Ints, Ints]:
    """Find the corrections of distinct words, which are not in the vocabulary."""
    starts = np.zeros(len(begins) + 1, np.int64)
    columns = np.empty((4, max(4 * len(begins), 256)), np.int64)
    found = np.empty((2, MAX_NEAREST), np.int64)
    n = 0
    for row in range(len(begins)):
        start, end = begins[row], ends[row]
        if n + _PER_WORD > columns.shape[1]:
            more = np.empty((4, 2 * columns.shape[1] + _PER_WORD), np.int64)
            for line in range(4):
                for k in range(n):
                    more[line, k] = columns[line, k]
            columns = more
        if letter_set(letters, start, end):
            n = _suggest_near(letters, start, end, forms, finder, found, columns, n)
            n = _suggest_split(letters, start, end, vocabulary, forms, columns, n)
        starts[row + 1] = n
    return starts, columns[:, :n]


@njit()
def _form_of(vocabulary: Any, forms: Int32s, letters: Codes, start: int, end: int) -> Any:
    """Return the number of the form of a word, -1 if no name has it."""
    slots, word_ends, known = vocabulary
    word = find_word(slots, word_ends, known, letters, start, end)
    return np.int64(forms[word]) if word >= 0 else np.int64(-1)


@njit()
def _suggest_near(
    letters: Codes,
    start: int,
    end: int,
    forms: Int32s,
    finder: WordFinder,
    found: Ints,
    columns: Ints,
    n: int,
) -> int:
    word_ends, known = finder.word_ends, finder.letters
    is_plural = end - start > MIN_LETTERS and letters[end - 1] == _S
    if letters[end - 2] == _S or letters[end - 2] == _I or letters[end - 2] == _U:
        is_plural = False  # -ss, -sis, -us
    for stop in (end, end - 1) if is_plural else (end, end):
        n_found = find_nearest(finder, letters, start, stop, found)
        for k in range(n_found):
            word, edits = found[0, k], max(found[1, k], 1)
            first, last = word_ends[word], word_ends[word + 1]
            if forms[word] >= 0 and is_plausible(letters, start, stop, known, first, last, edits):
                columns[0, n], columns[1, n] = forms[word], -1
                columns[2, n], columns[3, n] = 1, edits
                n += 1
        if not is_plural:
            break
    return n


@njit()
def is_plausible(
    text: Codes, start: int, end: int, known: Codes, first: int, last: int, edits: int
) -> bool:
    """Whether a word may be meant, by its beginning and end; another word often differs there.

    The first letter changes only with one edit in a word of six letters or more: it is missing, too
    many, or of a word of nine letters, or beside the right one on the keyboard; it never becomes or
    loses an *a*, which negates. Opposite beginnings (*hyper*, *hypo*) and endings of different
    kinds (*itis*, *oma*) are none for each other.
    With two edits the last letter stays. An adjective is none for a noun: *myopic*, *myopia*.

    Args:
        text: Code points of the text.
        start: Start of the word as written.
        end: Its end.
        known: Code points of known words.
        first: Start of the known word.
        last: End of the known word.
        edits: Number of edits between them.
    """
    n, m = end - start, last - first
    is_exchanged = text[start] == known[first + 1] and text[start + 1] == known[first]
    if text[start] != known[first] and not is_exchanged:
        if edits > 1 or m < _MIN_FIRST:
            return False
        if n != m and (text[start] if n > m else known[first]) == _A:
            return False
        if m < LONG_WORD and n == m and not _are_beside(text[start], known[first]):
            return False
    if text[end - 1] != known[last - 1]:
        if edits > 1:
            return False
        is_adjective = (text[end - 2] == _I and text[end - 1] == _C) or (
            text[end - 2] == _A and text[end - 1] == _L
        )
        if n == m and is_adjective:
            return False
    for k in range(0, len(_BEGINNINGS), 2):
        one, other = _BEGINNINGS[k], _BEGINNINGS[k + 1]
        if (_begins(text, start, end, one) and _begins(known, first, last, other)) or (
            _begins(text, start, end, other) and _begins(known, first, last, one)
        ):
            return False
    kind, other_kind = _ending(text, start, end), _ending(known, first, last)
    return bool(kind < 0 or other_kind < 0 or kind == other_kind)


@njit()
def _are_beside(one: Any, other: Any) -> bool:
    """Whether two letters are beside each other on a keyboard."""
    for k in range(len(_KEYS) - 1):
        if (_KEYS[k] == one and _KEYS[k + 1] == other) or (
            _KEYS[k] == other and _KEYS[k + 1] == one
        ):
            return True
    return False


@njit()
def _begins(letters: Codes, start: int, end: int, beginning: Ints) -> bool:
    for k in range(len(beginning)):
        if not beginning[k]:
            return True
        if k >= end - start or beginning[k] != np.int64(letters[start + k]):
            return False
    return True


@njit()
def _ending(letters: Codes, start: int, end: int) -> Any:
    """Return the kind of the longest ending that a word has, -1 of others."""
    kind, longest = -1, 0
    for row in range(len(_ENDING_ROWS)):
        k = 0
        while _ENDING_ROWS[row, k] and k < end - start:
            if _ENDING_ROWS[row, k] != np.int64(letters[end - 1 - k]):
                break
            k += 1
        if not _ENDING_ROWS[row, k] and k > longest:
            kind, longest = _ENDING_KINDS[row], k
    return kind


@njit()
def _suggest_split(
    letters: Codes, start: int, end: int, vocabulary: Any, forms: Int32s, columns: Ints, n: int
) -> int:
    for middle in range(start + _MIN_HALF, end - _MIN_HALF + 1):
        first = _form_of(vocabulary, forms, letters, start, middle)
        if first < 0:
            continue
        second = _form_of(vocabulary, forms, letters, middle, end)
        if second < 0 and letters[end - 1] == _S:
            second = _form_of(vocabulary, forms, letters, middle, end - 1)
        if second >= 0:
            columns[0, n], columns[1, n], columns[2, n], columns[3, n] = first, second, 1, 1
            n += 1
    return n


@njit(inline="always")
def _outline(letters: Codes, start: Any, end: Any) -> Any:
    """Return a short hash of the length of a word and of letters at its ends."""
    state = np.uint64(end - start)
    for k in (start, start + 1, start + 2, end - 2, end - 1):
        state = (state ^ np.uint64(letters[k])) * _STEP
    return state


@njit()
def _find_outlines(word_ends: Ints, letters: Codes) -> Flags:
    """Return which outlines the words of a vocabulary have: a fast test that excludes most."""
    n_bits = 14
    while 1 << n_bits < 8 * len(word_ends):
        n_bits += 1
    known = np.zeros(1 << n_bits, np.bool_)
    for n in range(len(word_ends) - 1):
        if word_ends[n + 1] - word_ends[n] >= _MIN_JOINED:
            at = _outline(letters, word_ends[n], word_ends[n + 1])
            known[at >> np.uint64(64 - n_bits)] = True
    return known


@njit(work=lambda letters, *_: 10 * len(letters))
def _find_joined(
    letters: Codes, ends: Ints, vocabulary: Any, forms: Int32s, outlines: Flags
) -> Ints:
    """Find neighbours that are one word of the vocabulary: (position, form)."""
    out = np.empty((2, len(ends)), np.int64)
    n, start, shift = 0, np.int64(0), np.uint64(64)
    while 1 << np.int64(np.uint64(64) - shift) < len(outlines):
        shift -= np.uint64(1)
    for at in range(len(ends) - 1):
        middle, end = ends[at], ends[at + 1]
        first, start = start, middle
        if min(middle - first, end - middle) < _MIN_PIECE:
            continue
        if not _MIN_JOINED <= end - first <= MAX_LETTERS:
            continue
        if len(outlines) and not outlines[_outline(letters, first, end) >> shift]:
            continue
        form = _form_of(vocabulary, forms, letters, first, end)
        if form >= 0 and letter_set(letters, first, end):
            out[0, n], out[1, n] = at, form
            n += 1
    return out[:, :n].copy()


def walk_corrected(read: TokensRead, corrections: Corrections, names: NameArrays) -> Ints:
    """Return the names with corrected words: (5, matches).

    The rows are node, first and last token, edits, and the first corrected token.

    Args:
        read: Tokens of the text.
        corrections: Words that each token may be meant as.
        names: Arrays of the index of names.
    """
    starts, columns = corrections
    at = np.flatnonzero(starts[1:] > starts[:-1])
    size = 4 * len(at) + 16
    return collect(_walk, 5, size, read.words, read.stems, starts, columns, at, names.trie)


@njit(work=lambda words, stems, starts, columns, *_: 50 * columns.shape[1])
def _walk(
    words: Int32s,
    stems: Int32s,
    starts: Ints,
    columns: Ints,
    positions: Ints,
    trie: Trie,
    out: Ints,
) -> int:
    """Walk from each word before a corrected one; return the number of names found."""
    stack = np.empty((5, 4096), np.int64)  # next token, node, corrections, edits, tokens of name
    n = 0
    for p in positions:
        for begin in range(p, max(p - _MAX_BEFORE, 0) - 1, -1):
            if begin < p and words[begin] < 0:
                break
            node = node_before(trie, words, begin, p)
            if node >= 0:
                _push(stack, 0, p, node, 0, 0, p - begin)
                n = _walk_from(begin, p, stack, words, stems, starts, columns, trie, out, n)
    return n


@njit(inline="always")
def _push(
    stack: Ints, depth: Any, at: Any, node: Any, corrected: Any, edits: Any, size: Any
) -> Any:
    """Put a state on the stack; return the number of states."""
    stack[0, depth], stack[1, depth], stack[2, depth] = at, node, corrected
    stack[3, depth], stack[4, depth] = edits, size
    return depth + 1


@njit()
def _walk_from(
    begin: int,
    p: int,
    stack: Ints,
    words: Int32s,
    stems: Int32s,
    starts: Ints,
    columns: Ints,
    trie: Trie,
    out: Ints,
    n: int,
) -> int:
    depth = 1
    while depth:
        depth -= 1
        at, node, corrected = stack[0, depth], stack[1, depth], stack[2, depth]
        edits, size = stack[3, depth], stack[4, depth]
        is_name = corrected and has_rows(trie, node)
        if is_name and (corrected == 1 or size >= _LONG_NAME):
            n = record(out, n, node, begin, at - 1, edits, p)
        if at >= len(words) or depth + MAX_NEAREST > stack.shape[1] - _PER_WORD:
            continue
        if at > p:
            if stems[at] >= 0:
                child = child_by(trie, node, np.int64(stems[at]))
                is_name = child and has_rows(trie, child)
                if is_name and (corrected == 1 or size + 1 >= _LONG_NAME):
                    n = record(out, n, child, begin, at, edits, p)
            if words[at] >= 0:
                child = child_by(trie, node, np.int64(words[at]))
                if child:
                    depth = _push(stack, depth, at + 1, child, corrected, edits, size + 1)
        if corrected == _MAX_CORRECTED:
            continue
        for k in range(starts[at], starts[at + 1]):
            child = child_by(trie, node, columns[0, k])
            if child and columns[1, k] >= 0:
                child = child_by(trie, child, columns[1, k])
            if not child:
                continue
            after, n_edits = at + columns[2, k], edits + columns[3, k]
            n_words = size + 1 + (columns[1, k] >= 0)
            depth = _push(stack, depth, after, child, corrected + 1, n_edits, n_words)
    return n


@njit(inline="always")
def record(out: Ints, n: Any, node: Any, begin: Any, last: Any, edits: Any, p: Any) -> Any:
    """Write a match into the columns found, if there is space for it; return their number.

    Args:
        out: Columns found.
        n: Number of matches so far.
        node: Node of the name in the trie.
        begin: First token.
        last: Last token.
        edits: Number of edits.
        p: First corrected token.
    """
    if n < out.shape[1]:
        out[0, n], out[1, n], out[2, n], out[3, n], out[4, n] = node, begin, last, edits, p
    return n + 1
