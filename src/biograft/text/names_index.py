"""Dictionary matching: find all names of a store in text.

Names and text are compared by the normal forms of their tokens (:mod:`biograft.text.tokens`,
:mod:`biograft.text.token_forms`): case, hyphens, accents, character width, plurals, possessives,
British spelling, Greek letters and Roman numerals do not matter. Of names that differ in these,
those written as the text count. :mod:`biograft.text.name_rules` says which names are searched.
The arrays of an index lie on disk; they are memory-mapped, and shared by all processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import compress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.artifacts import ArtifactKind, describe_files, new_folder
from biograft.config import from_mapping
from biograft.errors import StoreError
from biograft.kb import KnowledgeBase
from biograft.kb.names import language_code
from biograft.progress import Progress
from biograft.text.name_arrays import (
    NameArrays,
    blocks_of_column,
    blocks_of_texts,
    build_arrays,
    walk,
)
from biograft.text.name_rules import FUNCTION_WORDS, NamesIndexConfig, with_case
from biograft.text.spans import Ints, Spans, select_disjoint
from biograft.text.token_forms import TokenForms, surface_of
from biograft.text.tokens import Tokens, find_tokens, join_texts
from biograft.text.vocabulary import Int32s, Vocabulary

NAMES_INDEX = ArtifactKind(
    format="biograft-names",
    version=2,
    called="names index",
    remedy="run `biograft index` again",
    absent="make one with `biograft index`",
    keys=("config", "made_from", "n_rows", "files"),
)
_CACHE_SIZE = 1 << 18
"""Patterns whose rows are cached, since texts repeat names."""
_BATCH_CHARACTERS = 1 << 18
"""Characters searched per call: short texts are searched together."""


class NameMatch(NamedTuple):
    """A span of text that matches names, with their rows in the store's table of names."""

    start: int
    end: int
    text: str
    name_rows: tuple[int, ...]


class PatternMatches(NamedTuple):
    """All matches of names in several texts, in columns, overlapping ones included.

    They are sorted by text and start; of one start the longer comes first, and of one span an exact
    match before a plural. :meth:`NamesIndex.rows_of` checks the case.
    """

    text: Ints
    """Index of the text."""
    start: Ints
    end: Ints
    pattern: Ints
    """The node of the names, which are equal once normalised."""


class TokensRead(NamedTuple):
    """The tokens of texts, and the numbers of their forms; -1 of those that no name has."""

    tokens: Tokens
    words: Int32s
    stems: Int32s
    """The form of a word without its plural *s*, where it is another."""


class NamesIndex:
    """Finds a fixed set of names in any text.

    >>> NamesIndex.build(["lung cancer", "AIDS"]).find("Lung-cancers, no aids")
    [NameMatch(start=0, end=12, text='Lung-cancers', name_rows=(0,))]
    """

    def __init__(
        self,
        arrays: NameArrays,
        config: NamesIndexConfig,
        skipped: Counter[str] | None = None,
        excluded: frozenset[int] = frozenset(),
        opened: _Opened | None = None,
        only: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        self.arrays, self.config = arrays, config
        self.skipped = skipped or Counter()
        """Counts of names that are not searched, by reason."""
        self._excluded, self._only, self._opened = excluded, only, opened
        self._cache: dict[int, _Pattern] = {}
        self._forms = TokenForms(Vocabulary(*arrays[:3]), arrays.forms)

    @classmethod
    def build(
        cls,
        names: Iterable[str],
        config: NamesIndexConfig | None = None,
        *,
        rows: Sequence[int] | Ints | None = None,
    ) -> NamesIndex:
        """Build from names; ``rows`` are their ids (by default 0, 1, ...)."""
        config = config or NamesIndexConfig()
        blocks = blocks_of_texts(names, rows)
        arrays, skipped = build_arrays(blocks, config, 0, Progress(enabled=False))
        return cls(arrays, config, skipped)

    @classmethod
    def from_store(
        cls,
        kb: KnowledgeBase,
        config: NamesIndexConfig | None = None,
        progress: Progress | None = None,
    ) -> NamesIndex:
        """Build from the names of a store."""
        config = config or NamesIndexConfig()
        rows = np.arange(kb.n_names, dtype=np.int64)
        if config.languages:
            wanted = {language_code(tag) for tag in config.languages}
            tags = [index for index, tag in enumerate(kb.languages) if tag in wanted]
            rows = np.flatnonzero(np.isin(kb.numbers("names", "language"), tags))
        blocks = blocks_of_column(kb.texts("names", "text"), rows)
        progress = progress or Progress(enabled=False)
        arrays, skipped = build_arrays(blocks, config, len(rows), progress)
        return cls(arrays, config, skipped)

    def save(self, folder: Path, made_from: str, n_rows: int, *, overwrite: bool = False) -> None:
        """Write the index to a folder; ``made_from`` identifies what its rows refer to."""
        with new_folder(folder, overwrite=overwrite) as work:
            self.arrays.save(work)
            content = {
                "config": asdict(self.config),
                "made_from": made_from,
                "n_rows": n_rows,
                "n_names": self.n_names,
                "skipped": dict(self.skipped),
                "files": describe_files(work),
            }
            NAMES_INDEX.write(work, content)

    @classmethod
    def open(cls, folder: Path, made_from: str) -> NamesIndex:
        """Open an index that was made from this; it stays on disk."""
        manifest = NAMES_INDEX.read(folder)
        if manifest["made_from"] != made_from:
            raise StoreError(f"{folder}: was built from other names; {NAMES_INDEX.remedy}")
        NAMES_INDEX.check_files(folder, manifest)
        try:
            arrays = NameArrays.open(folder)
            config = from_mapping(NamesIndexConfig, manifest["config"])
        except (OSError, ValueError) as error:
            raise NAMES_INDEX.damaged(folder, error) from error
        opened = _Opened(folder, int(manifest["n_rows"]))
        return cls(arrays, config, Counter(manifest.get("skipped", {})), opened=opened)

    @property
    def n_names(self) -> int:
        """The number of names that are searched."""
        return len(self.arrays.rows)

    def without(
        self, rows: Iterable[int], *, only: npt.NDArray[np.bool_] | None = None
    ) -> NamesIndex:
        """Return the same index without the names of some rows, such as stop words.

        ``only`` says of each row of the store whether it is searched at all.
        """
        excluded = self._excluded.union(rows)
        return NamesIndex(self.arrays, self.config, self.skipped, excluded, self._opened, only)

    # ---- finding names

    def find(self, text: str) -> list[NameMatch]:
        """Find the names in a text: of overlapping ones the leftmost, then the longest."""
        return self.find_many([text])[0]

    def among(self, texts: Sequence[str]) -> set[str]:
        """Return the texts that are names as a whole."""
        return {
            text
            for text, matches in zip(texts, self.find_many(texts), strict=True)
            if matches and (matches[0].start, matches[0].end) == (0, len(text))
        }

    def find_many(self, texts: Sequence[str]) -> list[list[NameMatch]]:
        """Find the names in each of several texts, which is faster than one by one."""
        return self._leftmost(texts, self.search(texts))

    def _leftmost(self, texts: Sequence[str], matches: PatternMatches) -> list[list[NameMatch]]:
        """Return the names of matches: of overlapping ones the leftmost, then the longest."""
        found: list[list[NameMatch]] = [[] for _ in texts]
        text_before, last_end = -1, -1
        columns = (column.tolist() for column in matches)
        for n, start, end, pattern in zip(*columns, strict=True):
            if n == text_before and start < last_end:
                continue
            matched = texts[n][start:end]
            if rows := self.rows_of(pattern, matched):
                found[n].append(NameMatch(start, end, matched, rows))
                text_before, last_end = n, end
        return found

    def find_disjoint(self, text: str) -> list[NameMatch]:
        """Find names in a text as annotation does: of overlapping ones the longest is kept."""
        matches = self.search([text])
        columns = (matches.pattern.tolist(), matches.start.tolist(), matches.end.tolist())
        found = [
            NameMatch(start, end, text[start:end], rows)
            for pattern, start, end in zip(*columns, strict=True)
            if (rows := self.rows_of(pattern, text[start:end]))
        ]
        bounds = np.array([(match.start, match.end) for match in found], np.int64).reshape(-1, 2)
        spans = Spans(np.zeros(len(found), np.int64), bounds[:, 0], bounds[:, 1])
        return [found[row] for row in select_disjoint(spans, np.zeros(len(found))).tolist()]

    def search(self, texts: Sequence[str]) -> PatternMatches:
        """Find all matches of names as columns, without an object per match."""
        parts = []
        for done, batch in batches_of(texts):
            try:
                text, *columns = self._search_in(batch, self.read(batch))
            except (ValueError, IndexError) as error:
                raise self.damaged(error) from error
            parts.append((text + done, *columns))
        if not parts:
            return PatternMatches(*(np.zeros(0, np.int64) for _ in PatternMatches._fields))
        return PatternMatches(*map(np.concatenate, zip(*parts, strict=True)))

    def read(self, texts: Sequence[str]) -> TokensRead:
        """Find the tokens of texts, with the numbers of their forms."""
        tokens = find_tokens(join_texts(texts))
        return TokensRead(tokens, *self._forms.of(tokens))

    def find_in(self, texts: Sequence[str], read: TokensRead) -> list[list[NameMatch]]:
        """Find the names in texts that were read, as ``find_many`` does."""
        return self._leftmost(texts, self._search_in(texts, read))

    def _search_in(self, texts: Sequence[str], read: TokensRead) -> PatternMatches:
        arrays, (tokens, words, stems) = self.arrays, read
        pattern, begin, stop = self._walk(words, stems)
        start, end = tokens.first[begin], tokens.last[stop]
        same = (begin[1:] == begin[:-1]) & (stop[1:] == stop[:-1])
        if ((start[1:] == start[:-1]) & (end[1:] >= end[:-1]) & ~same).any():
            # a character that is several tokens: the order of tokens is not that of characters
            plural = words[stop] != arrays.tokens[pattern]
            first_row = arrays.rows[arrays.row_starts[pattern]]
            order = np.lexsort((first_row, plural, -end, start))
            pattern, start, end = pattern[order], start[order], end[order]
        bounds = np.cumsum([0, *(len(text) + 1 for text in texts)])
        text_of = np.searchsorted(bounds, start, "right") - 1
        return PatternMatches(text_of, start - bounds[text_of], end - bounds[text_of], pattern)

    def _walk(self, words: Int32s, stems: Int32s) -> Ints:
        """Return the node, and the first and last token, of each match: (3, matches)."""
        trie = (self.arrays.tokens, self.arrays.children, self.arrays.row_starts)
        found: Ints = np.empty((3, len(words) + 16), np.int64)
        n = walk(words, stems, *trie, found)
        if n > found.shape[1]:
            found = np.empty((3, n), np.int64)
            walk(words, stems, *trie, found)
        return found[:, :n]

    def damaged(self, error: Exception) -> Exception:
        """Say that the index is damaged; the error itself if it is not from a folder."""
        return error if self._opened is None else NAMES_INDEX.damaged(self._opened.folder, error)

    def rows_of(self, pattern: int, text: str) -> tuple[int, ...]:
        """Return the rows of the names of a pattern that match a text in its case.

        If some are written as the text but for case and punctuation, only these. A text that is
        excluded, or a function word such as *his*, matches no other form of it.
        """
        if text.lower() in FUNCTION_WORDS:
            return ()
        known = self._cache.get(pattern)
        if known is None:
            if len(self._cache) > _CACHE_SIZE:
                self._cache.clear()
            known = self._cache[pattern] = self._read_pattern(pattern)
        rows, surfaces = known.rows, known.surfaces
        if known.cases is not None:
            cased = with_case(text)
            fit = [case is None or cased in (case, f"{case}s") for case in known.cases]
            rows = tuple(compress(rows, fit))
            surfaces = surfaces and list(compress(surfaces, fit))
        if not surfaces or not (known.excluded or len(rows) > 1):
            return rows
        own = surface_of(text)
        exact = tuple(compress(rows, [each == own for each in surfaces]))
        return exact if exact or own in known.excluded else rows

    def _read_pattern(self, pattern: int) -> _Pattern:
        first, end = self.arrays.row_starts[pattern : pattern + 2].tolist()
        rows = self.arrays.rows[first:end].tolist()
        if self._opened is not None and (not rows or max(rows) >= self._opened.n_rows):
            raise self.damaged(ValueError("rows: numbers out of range"))
        surfaces = self.arrays.surfaces[first:end].tolist()
        cases: list[str | None] = [None] * len(rows)
        low, high = np.searchsorted(self.arrays.cased, np.array([first, end], np.uint32)).tolist()
        for k in range(low, high):
            begin, stop = self.arrays.cased_ends[k : k + 2].tolist()
            text = self.arrays.cased_bytes[begin:stop].tobytes()
            cases[int(self.arrays.cased[k]) - first] = text.decode(errors="replace")
        if self._only is not None:
            kept = [k for k, row in enumerate(rows) if self._only[row]]
            rows, cases = [rows[k] for k in kept], [cases[k] for k in kept]
            surfaces = [surfaces[k] for k in kept]
        distinct, excluded = len(set(surfaces)), frozenset[int]()
        if not self._excluded.isdisjoint(rows):
            excluded = frozenset(
                surface
                for row, surface in zip(rows, surfaces, strict=True)
                if row in self._excluded
            )
            kept = [k for k, row in enumerate(rows) if row not in self._excluded]
            rows, cases = [rows[k] for k in kept], [cases[k] for k in kept]
            surfaces = [surfaces[k] for k in kept]
        return _Pattern(
            tuple(rows),
            cases if any(case is not None for case in cases) else None,
            surfaces if distinct > 1 else None,
            excluded,
        )


class _Opened(NamedTuple):
    """Where an index lies, and how many rows there are that its names may have."""

    folder: Path
    n_rows: int


class _Pattern(NamedTuple):
    """The names of a node."""

    rows: tuple[int, ...]
    cases: list[str | None] | None
    """The case of each that matches only as written; None if there is none."""
    surfaces: list[int] | None
    """The hash of each as written; None if they are equal."""
    excluded: frozenset[int]
    """Hashes of names that never match."""


def batches_of(texts: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield texts that are searched together, and the index of the first."""
    done = 0
    while done < len(texts):
        n, size = done, 0
        while n < len(texts) and (n == done or size + len(texts[n]) <= _BATCH_CHARACTERS):
            size += len(texts[n])
            n += 1
        yield done, texts[done:n]
        done = n
