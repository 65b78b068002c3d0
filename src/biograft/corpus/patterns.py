"""Which names of a store are looked for in text, and what the search for them looks for.

Names that are marked alike (see :mod:`biograft.corpus.tokens`) are one *pattern*. Some names must
be found in the case they are written in, or ``ALL`` would be found in every second sentence.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from biograft.corpus.tokens import is_invisible, mark_names, parts_words
from biograft.corpus.words import COMMON_WORDS, FUNCTION_WORDS
from biograft.errors import ConfigError
from biograft.sources.files import read_lines
from biograft.text import APOSTROPHES, normalise

OVERLAPS = ("longest", "all")
NAMES_AT_ONCE = 100_000
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

    def __post_init__(self) -> None:
        if self.overlap not in OVERLAPS:
            raise ConfigError(
                f"overlap: expected one of {', '.join(OVERLAPS)}, found {self.overlap!r}"
            )
        for field, low in (("min_length", 1), ("acronym_length", 0)):
            value = getattr(self, field)
            if value < low:
                raise ConfigError(f"{field}: expected {low} or more, found {value}")


class Patterns:
    """What names are marked as, and which names (by their rows) each pattern stands for."""

    def __init__(
        self,
        names: Iterable[str],
        config: DictionaryConfig,
        rows: Sequence[int] | Ints | None = None,
    ) -> None:
        self.config = config
        self.skipped: Counter[str] = Counter()
        """How many names were left out, by reason."""
        self._stop = FUNCTION_WORDS.union(map(normalise, config.stop_words))
        self._cased: dict[int, str] = {}
        numbers: list[int] = []
        chunks: list[pa.Array] = []
        for block, places in self._blocks(names, rows):
            marked = mark_names(block, plurals=config.plurals)
            kept = [key for key in marked if key]
            numbers += [place for key, place in zip(marked, places, strict=True) if key]
            self.skipped["no letters"] += len(marked) - len(kept)
            chunks.append(pa.array(kept, pa.large_binary()))
        self.skipped = +self.skipped
        self.n_names = len(numbers)
        keys = pa.chunked_array(chunks, pa.large_binary()).combine_chunks().dictionary_encode()
        self.keys: list[bytes] = keys.dictionary.to_pylist()
        """What is searched for, as UTF-8; a pattern is known by its place here."""
        patterns = keys.indices.to_numpy()
        order = np.array(numbers, np.int64)
        # seen as memory: single numbers are read from it much faster than from an array
        self._rows = order[np.lexsort((order, patterns))].data
        self._row_ends = np.cumsum([0, *np.bincount(patterns, minlength=len(self.keys))]).data
        self._known: dict[int, tuple[int, ...]] = {}

    def rows_of(self, pattern: int, found: str) -> tuple[int, ...]:
        """Give the names of a pattern that may be written as ``found``, which has their case."""
        known = self._known.get(pattern)
        if known is not None:
            return known
        rows = self._rows[self._row_ends[pattern] : self._row_ends[pattern + 1]].tolist()
        if not self._cased.keys().isdisjoint(rows):
            return tuple(r for r in rows if r not in self._cased or self._same_case(r, found))
        if len(self._known) > _REMEMBERED:
            self._known.clear()
        self._known[pattern] = tuple(rows)
        return self._known[pattern]

    def _same_case(self, row: int, found: str) -> bool:
        name, text = self._cased[row], _with_case(found)
        return text == name or (self.config.plurals and text == f"{name}s")

    # ---- building

    def _blocks(
        self, names: Iterable[str], rows: Sequence[int] | Ints | None
    ) -> Iterator[tuple[list[str], list[int]]]:
        """Give the names to look for, many at a time, with their numbers."""
        texts = iter(names)
        done = 0
        while block := list(islice(texts, NAMES_AT_ONCE)):
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


def _with_case(text: str) -> str:
    """Make what two spellings have in common that differ in hyphens and blanks, not in case."""
    plain = unicodedata.normalize("NFKC", text)
    return plain if plain.isalnum() else " ".join("".join(map(_cased_char, plain)).split())


def _cased_char(char: str) -> str:
    if char in APOSTROPHES or is_invisible(char):
        return ""
    return " " if parts_words(char) else char


def read_stop_words(path: Path) -> tuple[str, ...]:
    """Read names never to look for, one a line."""
    return tuple(line.strip() for _, line in read_lines(path) if line.strip())
