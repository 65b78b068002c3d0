"""Find the names of a store in text, all at once, in time linear in the text.

An Aho-Corasick automaton runs over marked tokens (see :mod:`biograft.corpus.tokens`): case,
hyphens, apostrophes, width and the plural *s* of the last word do not matter, the bounds of words
do, except in scripts written without blanks. Offsets are those of the unaltered text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import ahocorasick_rs
import numpy as np

from biograft.corpus.patterns import NAMES_AT_ONCE, DictionaryConfig, Ints, Patterns
from biograft.corpus.tokens import NAME_ENDS, Tokens, mark_joined
from biograft.kb import KnowledgeBase
from biograft.languages import language_code

_TEXT_AT_ONCE = 1 << 18
"""Characters searched at once: many short texts together, for the cost of a call."""


class DictionaryMatch(NamedTuple):
    """A stretch of text that is a name: of which rows of the store's table of names."""

    start: int
    end: int
    text: str
    name_rows: tuple[int, ...]


class Found(NamedTuple):
    """All places where patterns stand in some texts, in columns, overlapping ones too.

    They are in the order of the texts and, in each, of their starts; of one start the longer comes
    first, and of one place a name before one that only its plural matches. Whether the case is
    right, :meth:`Patterns.rows_of` knows.
    """

    text: Ints
    """Number of the text."""
    start: Ints
    end: Ints
    pattern: Ints


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
        self.patterns = Patterns(names, self.config, rows)
        self._automaton = ahocorasick_rs.BytesAhoCorasick(
            self.patterns.keys, matchkind=ahocorasick_rs.MATCHKIND_STANDARD
        )

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
        blocks = (rows[k : k + NAMES_AT_ONCE] for k in range(0, len(rows), NAMES_AT_ONCE))
        names = (name for block in blocks for name in texts.take(block).to_pylist())
        return cls(names, config, rows=rows)

    def find(self, text: str) -> list[DictionaryMatch]:
        """Find the names in a text, from left to right, the longer first."""
        return self.find_many([text])[0]

    def find_many(self, texts: Sequence[str]) -> list[list[DictionaryMatch]]:
        """Find the names in each of several texts; together they take less time than apart."""
        found = self.search(texts)
        cuts = np.searchsorted(found.text, np.arange(len(texts) + 1)).tolist()
        columns = [column.tolist() for column in (found.pattern, found.start, found.end)]
        return [
            list(self._choose(text, zip(*(column[cut:end] for column in columns), strict=True)))
            for text, cut, end in zip(texts, cuts, cuts[1:], strict=False)
        ]

    def search(self, texts: Sequence[str]) -> Found:
        """Find all places of patterns, in columns: for much text, where objects cost too much."""
        parts = []
        done = 0
        while done < len(texts):
            n, size = done, 0
            while n < len(texts) and (n == done or size + len(texts[n]) <= _TEXT_AT_ONCE):
                size += len(texts[n])
                n += 1
            text, *columns = self._search_in(texts[done:n])
            parts.append((text + done, *columns))
            done = n
        if not parts:
            return Found(*(np.zeros(0, np.int64) for _ in Found._fields))
        return Found(*map(np.concatenate, zip(*parts, strict=True)))

    def _search_in(self, texts: Sequence[str]) -> Found:
        joined = NAME_ENDS.join([text.replace(NAME_ENDS, " ") for text in texts])
        tokens = mark_joined(joined, plurals=self.config.plurals)
        places = self._automaton.find_matches_as_indexes(tokens.data.data, overlapping=True)
        bounds = np.cumsum([0, *(len(text) + 1 for text in texts)])
        pattern, start, end = _in_order(places, tokens)
        text_of = np.searchsorted(bounds, start, "right") - 1
        return Found(text_of, start - bounds[text_of], end - bounds[text_of], pattern)

    def _choose(
        self, text: str, found: Iterable[tuple[int, int, int]]
    ) -> Iterator[DictionaryMatch]:
        """Take matches that are in the right case and, unless all are wanted, do not overlap."""
        before = (-1, -1)
        farthest = -1
        longest = self.config.overlap == "longest"
        for pattern, start, end in found:
            # at the same place the name itself was found before, this one only by its plural
            if (longest and start < farthest) or (start, end) == before:
                continue
            piece = text[start:end]
            rows = self.patterns.rows_of(pattern, piece)
            if rows:
                yield DictionaryMatch(start, end, piece, rows)
                before, farthest = (start, end), end


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
