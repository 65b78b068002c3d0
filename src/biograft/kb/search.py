"""Search names in a store: exact matches first, then prefixes, then names with all words.

This is for browsing a store, not for linking: it scans all names once, which takes about a
second for ten million of them. It needs nothing in memory.

Suggestions while typing: names that begin with the text, or have a word that does. They keep the
places where words begin in the names of a store, sorted, so that an answer takes microseconds to a
few milliseconds, among any number of names. They are made when a process starts; a million names
take seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from biograft.arrays import Ints, Uints
from biograft.kb.names import APOSTROPHES, HAN_RANGES, normalise
from biograft.kb.pinyin import PinyinNames
from biograft.kb.records import NameKind
from biograft.kb.similar_characters import similar_spellings
from biograft.kb.store import KnowledgeBase, Match
from biograft.kb.tables import NAME_KINDS, TextColumn

if TYPE_CHECKING:  # suggestions need no polars
    import polars as pl

PINYIN, SIMILAR = "pinyin", "similar"
"""Kinds of match of a Chinese name: by its pinyin, and with one other character."""
MAX_CANDIDATES = 20_000
"""Maximum number of names that are ranked; the shortest ones if more contain all words."""

MAX_SEARCHED = 100
"""Characters of a word by which names are looked through; those found are compared with all."""


def search_names(
    base: KnowledgeBase, text: str, *, limit: int = 10, language: str | None = None
) -> list[Match]:
    """Return at most ``limit`` concepts by a name or a part of one, best match first.

    Args:
        base: The knowledge base.
        text: A name, or words of one.
        limit: Maximum number of concepts.
        language: Language of the names; None: all.

    >>> [match.name for match in search_names(kb, "diabetes", limit=2)]
    ['diabetes', 'diabetes medicine']
    """
    matches = {match.concept: match for match in base.find(text, language=language)}
    if len(matches) < limit:
        for _, row, how in _scan(base, text, language):
            match = base.match(row, how)
            matches.setdefault(match.concept, match)
            if len(matches) >= limit:
                break
    if len(matches) < limit and language in (None, "zh") and text.isascii():
        for row in PinyinNames.of(base).find(text):
            match = base.match(row, PINYIN)
            matches.setdefault(match.concept, match)
    return list(matches.values())[:limit] or _find_similar(base, text, limit, language)


def _scan(
    base: KnowledgeBase, text: str, language: str | None
) -> list[tuple[tuple[bool, int], int, str]]:
    """Scan all names for those that contain every word of the query: rank, row and how."""
    query = normalise(text)
    words = query.split()
    if not words or not query.isprintable():
        return []
    import polars as pl

    table = base.table("names")
    column = pl.from_arrow(table.column("text"))
    assert isinstance(column, pl.Series)
    rows = np.arange(len(column), dtype=np.intp)
    if language is not None:
        tag = base.languages.index(language) if language in base.languages else -1
        rows = np.flatnonzero(table.column("language").to_numpy() == tag)
    for word in sorted(set(words), key=len, reverse=True):
        rows = rows[_rows_with(column[rows], word[:MAX_SEARCHED])]
    if len(rows) > MAX_CANDIDATES:
        lengths = column[rows].str.len_bytes().to_numpy()
        rows = rows[np.argsort(lengths, kind="stable")[:MAX_CANDIDATES]]
    candidates = []
    for row in rows.tolist():
        key = normalise(column[row])
        if all(word in key for word in words):
            prefix = key.startswith(query)
            candidates.append(((not prefix, len(key)), row, "prefix" if prefix else "words"))
    return sorted(candidates)


def _rows_with(names: pl.Series, word: str) -> npt.NDArray[np.intp]:
    """Return the names whose keys may contain a word.

    ASCII names differ from their keys in case only; the few other names are normalised first.
    """
    import polars as pl

    hit = names.str.contains_any([word], ascii_case_insensitive=True).to_numpy().copy()
    non_ascii = names.str.len_bytes() != names.str.len_chars()
    special = (non_ascii | names.str.contains_any(["'", "`"])).to_numpy()
    normalised = (
        names.filter(pl.Series(special))
        .str.replace_many(dict.fromkeys(APOSTROPHES, ""))
        .str.normalize("NFKC")
        .str.to_lowercase()
        .str.replace_many({"ß": "ss", "ς": "σ"})
    )
    hit[special] = normalised.str.contains(word, literal=True).to_numpy()
    return np.flatnonzero(hit)


_COMPARED = 24
"""Bytes of a name that are sorted, from a word on; more are compared when names are read."""
_READ = 64
"""Names read for each concept that is wanted: a concept has several names."""
_SYNONYM_COST = 6.0
"""A synonym counts as so many characters longer than a preferred name."""
_WIDTH_WORTH = 4.0
"""Characters that a name may be longer for each doubling of the concepts below."""
_IN_WORDS = np.isin(np.arange(256), np.frombuffer(b"abcdefghijklmnopqrstuvwxyz0123456789", "u1"))
_PREFERRED = NAME_KINDS.index(NameKind.PREFERRED)
_AFTER = b"\xff" * _COMPARED
_HAN_LEADS = frozenset(
    chr(code).encode()[0] for first, last in HAN_RANGES for code in (first, last)
) | set(range(0xE4, 0xEA))


class NameSuggestions:
    """Finds names by their beginning, or by the beginnings of their words.

    Args:
        kb: The knowledge base.
        only: The one text that will be looked for: only names with its words are sorted then, which
            takes a tenth of a second among a million, and finds the same.

    >>> suggestions = NameSuggestions(kb)  # doctest: +SKIP
    >>> [match.name for match in suggestions.find("heart att")]  # doctest: +SKIP
    ['heart attack']
    """

    def __init__(self, kb: KnowledgeBase, only: str | None = None) -> None:
        self._kb, self._only, texts = kb, only, kb.texts("names", "text")
        keys = [normalise(text) for text in texts] if only is None else []
        self._rows: Any = range(len(keys))
        chosen: Any = slice(None)
        if only is not None:
            starts = {word.encode("utf-8", "surrogatepass") for word in normalise(only).split()}
            self._rows = chosen = _rows_with_words(texts, [word[:_COMPARED] for word in starts])
            keys = [normalise(texts[row]) for row in chosen.tolist()]
        self._concepts = kb.numbers("names", "concept")[chosen]
        self._languages = kb.numbers("names", "language")[chosen]
        self._keys = keys
        # short and preferred names, and wide concepts, are meant
        lengths = np.fromiter(map(len, keys), np.float64, len(keys))
        is_synonym = np.asarray(kb.numbers("names", "kind")[chosen]) != _PREFERRED
        width = np.log2(1 + kb.hierarchy.n_children())[np.asarray(self._concepts)]
        costs = lengths + _SYNONYM_COST * is_synonym - _WIDTH_WORTH * width
        name, offset, words = _word_starts(keys)
        # names that begin so come first, then those of the least cost, then the order of the store
        best_first = np.lexsort((name, costs[name], offset > 0))
        priority = np.empty(len(name), np.uint32)
        priority[best_first] = np.arange(len(name), dtype=np.uint32)
        order = np.argsort(words, kind="stable")
        self._words, self._names, self._priority = words[order], name[order], priority[order]

    def find(self, text: str, limit: int = 10, *, language: str | None = None) -> list[Match]:
        """Return at most ``limit`` concepts, each with the name that matches best.

        The name that is the text comes first; then names that begin with it, short and preferred
        ones of concepts with many below them before others; then names with the text at a later
        word; then names that have all its words, in any order; then Chinese names with this pinyin.
        Only where there is none, Chinese names with a similar character count.

        Args:
            text: What was typed so far.
            limit: Maximum number of concepts.
            language: Language of the names; None: all.
        """
        key = normalise(text)
        matches = []
        found = self._name_of_each(key, limit, language)
        for name in found.values():
            how = "exact" if self._keys[name] == key else "prefix"
            how = how if self._keys[name].startswith(key) else "words"
            matches.append(self._kb.match(int(self._rows[name]), how))
        spelt = self.pinyin.find(text) if len(found) < limit and language in (None, "zh") else ()
        for row in spelt:
            concept = int(self._kb.numbers("names", "concept")[row])
            if concept not in found and len(found) < limit:
                found[concept] = row
                matches.append(self._kb.match(row, PINYIN))
        every = self if self._only is None else None
        return matches or _find_similar(self._kb, text, limit, language, every)

    @cached_property
    def pinyin(self) -> PinyinNames:
        """The Chinese names by their pinyin, made when it is first asked for."""
        return PinyinNames.of(self._kb)

    def rows(self, text: str, limit: int) -> list[int]:
        """Return the rows of the concepts that ``find`` returns, without making objects.

        Args:
            text: What was typed so far.
            limit: Maximum number of concepts.
        """
        return list(self._name_of_each(normalise(text), limit, None))

    def _name_of_each(self, key: str, limit: int, language: str | None) -> dict[int, int]:
        """Return the concepts with a name that matches, best first, each with that name."""
        found: dict[int, int] = {}
        if not key or limit < 1:
            return found
        self._collect(found, self._equal_rows(key), [key], limit, language)
        self._collect(found, self._best_rows(key, limit), [key], limit, language)
        words = key.split()
        if len(found) < limit and len(words) > 1:
            ranges = {word: self._range(word) for word in words}
            rarest = min(words, key=lambda word: ranges[word][1] - ranges[word][0])
            self._collect(found, self._best_rows(rarest, limit, len(words)), words, limit, language)
        return found

    def _collect(
        self,
        found: dict[int, int],
        names: list[int],
        words: list[str],
        limit: int,
        language: str | None,
    ) -> None:
        """Add the names that have all words, one for a concept."""
        for name in names:
            if language is not None and self._kb.languages[self._languages[name]] != language:
                continue
            key = " " + self._keys[name]
            if all(f" {word}" in key or _has_han(word, key) for word in words):
                found.setdefault(int(self._concepts[name]), name)
            if len(found) >= limit:
                return

    def _range(self, key: str) -> tuple[int, int]:
        """Return the first and last place at which a word begins with a text."""
        wanted = key.encode("utf-8", "surrogatepass")[:_COMPARED]
        last = wanted + _AFTER[len(wanted) :]
        low = np.searchsorted(self._words, np.bytes_(wanted))
        return int(low), int(np.searchsorted(self._words, np.bytes_(last), side="right"))

    def _equal_rows(self, key: str) -> list[int]:
        """Return the names that are a text; they stand before longer ones that begin so."""
        low, high = self._range(key)
        rows: list[int] = self._names[low : min(low + _READ, high)].tolist()
        return [row for row in sorted(rows) if self._keys[row] == key]

    def _best_rows(self, key: str, limit: int, n_words: int = 1) -> list[int]:
        """Return the names at which a word begins with a text, best first."""
        low, high = self._range(key)
        priority, n_read = self._priority[low:high], limit * _READ * n_words
        if len(priority) > n_read:
            chosen = np.argpartition(priority, n_read)[:n_read]
            chosen = chosen[np.argsort(priority[chosen])]
        else:
            chosen = np.argsort(priority)
        rows: list[int] = self._names[low:high][chosen].tolist()
        return rows


def _find_similar(
    kb: KnowledgeBase,
    text: str,
    limit: int,
    language: str | None,
    every: NameSuggestions | None = None,
) -> list[Match]:
    """Return concepts with a Chinese name in which one character is another one, short names first.

    It has the same sound as that of the text, or a similar shape: 心机梗死 finds 心肌梗死.

    Args:
        kb: The knowledge base.
        text: What was typed.
        limit: Maximum number of concepts.
        language: Language of the names; None: all.
        every: The names by their beginning, if all of them are sorted already.
    """
    key = normalise(text)[:_COMPARED]
    others = list(similar_spellings(key, range(len(key)))) if "zh" in kb.languages else []
    if not others:
        return []
    among = every or NameSuggestions(kb, " ".join(others))
    found: dict[int, int] = {}
    for other in others:
        found = among._name_of_each(other, limit, language) | found
    matches = [kb.match(int(among._rows[name]), SIMILAR) for name in found.values()]
    return sorted(matches, key=lambda match: len(match.name))[:limit]


def _rows_with_words(texts: TextColumn, words: Iterable[bytes]) -> Ints:
    """Return the names in which one of some words may begin, as their keys write it.

    A key writes letters and digits of ASCII as they are, in lower case, and all else as a space;
    names with other characters, or an apostrophe, which is left out, are taken whatever they say.
    """
    found, first = [], 0
    for offsets, data in texts.chunks:
        text = np.frombuffer(bytes(data[: offsets[-1]]).lower() + bytes(_COMPARED), np.uint8)
        places = [np.flatnonzero((text > 127) | (text == 39) | (text == 96))]
        for word in words:
            at = np.flatnonzero(text[:-_COMPARED] == word[0])
            for i, byte in enumerate(word):
                at = at[text[at + i] == byte]
            is_first = offsets[np.searchsorted(offsets, at, side="right") - 1] == at
            places.append(at[is_first | ~_IN_WORDS[text[at - 1]]])
        rows = np.unique(np.searchsorted(offsets, np.concatenate(places), side="right") - 1)
        found.append(first + rows)
        first += len(offsets) - 1
    return np.concatenate(found)


def _has_han(word: str, key: str) -> bool:
    """Whether a key has a word that begins with a Chinese character, which follows no space."""
    return word.encode("utf-8", "surrogatepass")[0] in _HAN_LEADS and word in key


def _word_starts(
    keys: list[str],
) -> tuple[Uints, Ints, npt.NDArray[np.bytes_]]:
    """Find where words begin: the name, the byte in it, and the bytes from there on.

    A word begins after a space; every Chinese character is a word.
    """
    encoded = [key.encode("utf-8", "surrogatepass") for key in keys]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    text = np.frombuffer(b"\n".join([*encoded, b""]), np.uint8)
    starts = np.concatenate([[0], np.cumsum(lengths + 1)[:-1]]) if len(keys) else lengths
    before = np.concatenate([np.full(1, 10, np.uint8), text[:-1]])
    han = np.isin(text, np.fromiter(_HAN_LEADS, np.uint8))
    begins = np.flatnonzero((((before == 10) | (before == 32)) & (text > 32)) | han)
    name = np.searchsorted(starts, begins, side="right") - 1
    # bytes after the end of a name do not count
    left = (starts + lengths)[name] - begins
    padded = np.concatenate([text, np.zeros(_COMPARED, np.uint8)])
    words = np.zeros((len(begins), _COMPARED), np.uint8)
    for i in range(_COMPARED):
        inside = left > i
        words[inside, i] = padded[begins[inside] + i]
    as_bytes = np.ascontiguousarray(words).view(f"S{_COMPARED}").ravel()
    return name.astype(np.uint32), begins - starts[name], as_bytes
