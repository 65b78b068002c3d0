"""Find the names of a store in text, all at once, in time linear in the text.

An Aho-Corasick automaton runs over marked tokens (see :mod:`biograft.corpus.tokens`): case,
hyphens, apostrophes, width and the plural *s* of the last word do not matter, the bounds of words
do, except in scripts written without blanks. Offsets are those of the unaltered text.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import ahocorasick_rs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from biograft.corpus.tokens import (
    NAME_ENDS,
    Tokens,
    is_invisible,
    mark_joined,
    mark_names,
    parts_words,
)
from biograft.corpus.words import COMMON_WORDS, FUNCTION_WORDS
from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.languages import language_code
from biograft.sources.files import read_lines
from biograft.text import APOSTROPHES, normalise

OVERLAPS = ("longest", "all")
_NAMES_AT_ONCE = 100_000
_TEXT_AT_ONCE = 1 << 18
"""Characters searched at once: many short texts together, for the cost of a call."""
_REMEMBERED = 1 << 18
"""Patterns whose names are kept at hand; texts repeat themselves."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class DictionaryConfig:
    """Which names are looked for, and how."""

    languages: tuple[str, ...] = ()
    """Only names in these languages; all by default."""
    overlap: str = "longest"
    """``longest``: of overlapping matches the leftmost, then the longest; ``all``: every one."""
    min_length: int = 2
    """Names with fewer letters and digits are left out."""
    plurals: bool = True
    """Also find a name whose last word has an *s* more."""
    acronym_length: int = 4
    """Names of so many capitals at most match only in that case; so do common words with odd
    capitals (``cAMP``, ``GRACE``)."""
    stop_words: tuple[str, ...] = ()
    """Names never to look for, besides English function words."""
    stop_file: Path | None = None
    """A file with more of them, one a line."""

    def __post_init__(self) -> None:
        if self.overlap not in OVERLAPS:
            raise ConfigError(
                f"overlap: expected one of {', '.join(OVERLAPS)}, found {self.overlap!r}"
            )
        for field, low in (("min_length", 1), ("acronym_length", 0)):
            value = getattr(self, field)
            if value < low:
                raise ConfigError(f"{field}: expected {low} or more, found {value}")


class DictionaryMatch(NamedTuple):
    """A stretch of text that is a name: of which rows of the store's table of names."""

    start: int
    end: int
    text: str
    name_rows: tuple[int, ...]


class DictionaryMatcher:
    """Finds a fixed set of names in any text."""

    def __init__(
        self,
        names: Iterable[str],
        config: DictionaryConfig | None = None,
        *,
        rows: Sequence[int] | Ints | None = None,
    ) -> None:
        """Build from names; ``rows`` are the numbers to know them by (by default 0, 1, ...)."""
        self.config = config or DictionaryConfig()
        self.skipped: Counter[str] = Counter()
        """How many names were left out, by reason."""
        self._stop = _stop_words(self.config)
        self._cased: dict[int, str] = {}
        numbers: list[int] = []
        chunks: list[pa.Array] = []
        for block, places in self._blocks(names, rows):
            marked = mark_names(block, plurals=self.config.plurals)
            kept = [key for key in marked if key]
            numbers += [place for key, place in zip(marked, places, strict=True) if key]
            self.skipped["no letters"] += len(marked) - len(kept)
            chunks.append(pa.array(kept, pa.large_binary()))
        self.skipped = +self.skipped
        self.n_names = len(numbers)
        self._build(pa.chunked_array(chunks, pa.large_binary()), np.array(numbers, np.int64))

    @classmethod
    def from_store(
        cls, base: KnowledgeBase, config: DictionaryConfig | None = None
    ) -> DictionaryMatcher:
        """Build from the names of a store."""
        config = config or DictionaryConfig()
        table = base.table("names")
        rows = np.arange(len(table), dtype=np.int64)
        if config.languages:
            wanted = {language_code(tag) for tag in config.languages}
            tags = [place for place, tag in enumerate(base.languages) if tag in wanted]
            rows = np.flatnonzero(np.isin(table.column("language").to_numpy(), tags))
        texts = table.column("text")
        blocks = (rows[k : k + _NAMES_AT_ONCE] for k in range(0, len(rows), _NAMES_AT_ONCE))
        names = (name for block in blocks for name in texts.take(block).to_pylist())
        return cls(names, config, rows=rows)

    def find(self, text: str) -> list[DictionaryMatch]:
        """Find the names in a text, from left to right, the longer first."""
        return self.find_many([text])[0]

    def find_many(self, texts: Sequence[str]) -> list[list[DictionaryMatch]]:
        """Find the names in each of several texts; together they take less time than apart."""
        found: list[list[DictionaryMatch]] = []
        done = 0
        while done < len(texts):
            n, size = done, 0
            while n < len(texts) and (n == done or size + len(texts[n]) <= _TEXT_AT_ONCE):
                size += len(texts[n])
                n += 1
            found += self._find_in(texts[done:n])
            done = n
        return found

    def _find_in(self, texts: Sequence[str]) -> Iterator[list[DictionaryMatch]]:
        joined = NAME_ENDS.join([text.replace(NAME_ENDS, " ") for text in texts])
        tokens = mark_joined(joined, plurals=self.config.plurals)
        places = self._automaton.find_matches_as_indexes(tokens.data.data, overlapping=True)
        bounds = np.cumsum([0, *(len(text) + 1 for text in texts)])
        pattern, start, end = _in_order(places, tokens)
        text_of = np.searchsorted(bounds, start, "right") - 1
        start, end = start - bounds[text_of], end - bounds[text_of]
        cuts = np.searchsorted(text_of, np.arange(len(texts) + 1)).tolist()
        columns = [column.tolist() for column in (pattern, start, end)]
        for number, text in enumerate(texts):
            inside = slice(cuts[number], cuts[number + 1])
            yield self._choose(text, zip(*(column[inside] for column in columns), strict=True))

    def _choose(self, text: str, found: Iterable[tuple[int, int, int]]) -> list[DictionaryMatch]:
        """Take matches that are in the right case and, unless all are wanted, do not overlap."""
        matches: list[DictionaryMatch] = []
        start_before = end_before = farthest = -1
        longest = self.config.overlap == "longest"
        for pattern, start, end in found:
            if longest and start < farthest:
                continue
            if start == start_before and end == end_before:
                continue  # the name itself was found there, this one only by its plural
            piece = text[start:end]
            rows = self._known.get(pattern)
            if rows is None:
                rows = self._rows_of(pattern, piece)
            if rows:
                matches.append(DictionaryMatch(start, end, piece, rows))
                start_before, end_before = start, end
                farthest = end
        return matches

    # ---- building

    def _blocks(
        self, names: Iterable[str], rows: Sequence[int] | Ints | None
    ) -> Iterator[tuple[list[str], list[int]]]:
        """Give the names to look for, many at a time, with their numbers."""
        texts = iter(names)
        done = 0
        while block := list(islice(texts, _NAMES_AT_ONCE)):
            places: list[int] = list(range(done, done + len(block)))
            if rows is not None:
                places = np.asarray(rows[done : done + len(block)]).tolist()
            done += len(block)
            kept = [(t, p) for t, p in zip(block, places, strict=True) if self._wanted(t, p)]
            yield [text for text, _ in kept], [place for _, place in kept]

    def _wanted(self, name: str, row: int) -> bool:
        """Decide about one name, noting the case it must be found in."""
        key = normalise(name)
        letters = sum(map(str.isalnum, key))
        reason = ""
        if key in self._stop:
            reason = "stop word"
        elif letters < self.config.min_length:
            reason = "short"
        elif key.replace(" ", "").isdecimal():
            reason = "number"
        if reason:
            self.skipped[reason] += 1
            return False
        capitals = name.isupper() and letters <= self.config.acronym_length
        odd = key in COMMON_WORDS and name not in (name.lower(), name.capitalize())
        if odd or (capitals and " " not in name.strip()):
            self._cased[row] = _with_case(name)
        return True

    def _build(self, keys: pa.ChunkedArray, rows: Ints) -> None:
        coded = keys.combine_chunks().dictionary_encode()
        patterns = coded.indices.to_numpy()
        # seen as memory: single numbers are read from it much faster than from an array
        self._rows = rows[np.lexsort((rows, patterns))].data
        counts = np.bincount(patterns, minlength=len(coded.dictionary))
        self._row_ends = np.concatenate([[0], np.cumsum(counts)]).data
        self._known: dict[int, tuple[int, ...]] = {}
        self._automaton = ahocorasick_rs.BytesAhoCorasick(
            coded.dictionary.to_pylist(), matchkind=ahocorasick_rs.MATCHKIND_STANDARD
        )

    # ---- finding

    def _rows_of(self, pattern: int, found: str) -> tuple[int, ...]:
        """Give the names of a pattern, without those that must be in another case."""
        rows = self._rows[self._row_ends[pattern] : self._row_ends[pattern + 1]].tolist()
        if self._cased.keys().isdisjoint(rows):
            if len(self._known) > _REMEMBERED:
                self._known.clear()
            self._known[pattern] = tuple(rows)
        else:
            rows = [row for row in rows if row not in self._cased or self._same_case(row, found)]
        return tuple(rows)

    def _same_case(self, row: int, found: str) -> bool:
        name, text = self._cased[row], _with_case(found)
        return text == name or (self.config.plurals and text == f"{name}s")


def _in_order(found: list[tuple[int, int, int]], tokens: Tokens) -> tuple[Ints, Ints, Ints]:
    """Turn matches in the marked text into patterns, starts and ends in the unaltered one, sorted.

    At one place the longer match comes first, and a name before one found by its plural.
    """
    if not found:
        none = np.zeros(0, np.int64)
        return none, none, none
    numbers = np.fromiter(chain.from_iterable(found), np.int64, 3 * len(found))
    pattern, begin, stop = numbers[::3], numbers[1::3], numbers[2::3]
    first = np.searchsorted(tokens.starts, begin)
    last = np.searchsorted(tokens.starts, stop) - 1
    whole = tokens.ends[last] == stop
    # a match may also begin or end inside a token: on a character that carries a mark
    inside = first < len(tokens.starts)
    inside[inside] = tokens.starts[first[inside]] == begin[inside]
    inside &= whole | (tokens.stems[last] == stop)
    pattern, whole, first, last = pattern[inside], whole[inside], first[inside], last[inside]
    start, end = tokens.first[first], tokens.last[last]
    order = np.lexsort((pattern, ~whole, -end, start))
    return pattern[order], start[order], end[order]


def _with_case(text: str) -> str:
    """Make what two spellings have in common that differ in hyphens and blanks, not in case."""
    plain = unicodedata.normalize("NFKC", text)
    return plain if plain.isalnum() else " ".join("".join(map(_cased_char, plain)).split())


def _cased_char(char: str) -> str:
    if char in APOSTROPHES or is_invisible(char):
        return ""
    return " " if parts_words(char) else char


def _stop_words(config: DictionaryConfig) -> frozenset[str]:
    words = list(config.stop_words)
    if config.stop_file is not None:
        words += [line for _, line in read_lines(config.stop_file) if line.strip()]
    return FUNCTION_WORDS.union(map(normalise, words))
