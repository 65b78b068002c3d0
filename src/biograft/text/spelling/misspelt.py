"""Misspelt names in text: names of a store with a spelling error, or with a blank too many or few.

A word is corrected only if neither the names nor ordinary text have it, so that errors that are
words themselves are not found (*fool poisoning*). See
:mod:`~biograft.text.spelling.corrections` and :mod:`~biograft.text.spelling.chinese` for the edits
that are allowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from biograft.arrays import Ints
from biograft.text.names_index import NameMatch, NamesIndex, batches_of
from biograft.text.spelling.chinese import HanCorrector
from biograft.text.spelling.corrections import LONG_WORD, Corrector, english_words, walk_corrected
from biograft.text.tokens import Tokens

_MAX_ACRONYM = 6
"""A word of so many capitals is an acronym, which has no spelling."""
_MAX_OCCURRENCES = 2
"""Words that occur more often are assumed to be correct."""
_BLANKS = " \t\u00a0\u2009\u202f\u3000"
_SENTENCE_ENDS = frozenset(".!?:;\n\"'([*•-")


class MisspeltMatch(NamedTuple):
    """A span of text that is a misspelt name, with the rows of the name in the store's table."""

    start: int
    """Character offset of its first character."""
    end: int
    """Character offset behind its last character."""
    text: str
    """The text as written."""
    name_rows: tuple[int, ...]
    """Rows of the names that are meant."""
    edits: int
    """Letters that are wrong, missing, too many or exchanged, and blanks."""


class FoundNames(NamedTuple):
    """The names in a text, as written and misspelt."""

    exact: list[NameMatch]
    misspelt: list[MisspeltMatch]


class MisspeltNames:
    """Finds the names of an index with spelling errors.

    >>> names = NamesIndex.build(["heart failure", "hypertension"])
    >>> [match.text for match in MisspeltNames(names).find("Heartfailure, hypertenson.")]
    ['Heartfailure', 'hypertenson']
    """

    def __init__(self, names: NamesIndex, *, concepts: Ints | None = None) -> None:
        """Prepare the search.

        Args:
            names: Index of the names.
            concepts: Number of the concept of each row of the store's table of names, so that two
                names of one concept are not ambiguous. None: every row is a concept of its own.
        """
        self._names, self._concepts = names, concepts

    def find(self, text: str) -> list[MisspeltMatch]:
        """Find the misspelt names in a text, from left to right."""
        return self.find_many([text])[0].misspelt

    def find_many(self, texts: Sequence[str]) -> list[FoundNames]:
        """Find the names in each of several texts, as written and misspelt.

        Misspelt names that overlap a name as written are left out, unless they contain it and
        more, with one error or with most of their text outside of it. They do not overlap each
        other: the leftmost is taken, then the longest, then that with the fewest edits.
        """
        found = []
        for _, batch in batches_of(texts):
            try:
                found += self._find_in(batch)
            except (ValueError, IndexError) as error:
                raise self._names.damaged(error) from error
        return found

    def _find_in(self, texts: Sequence[str]) -> list[FoundNames]:
        read = self._names.read(texts)
        exact = self._names.find_in(texts, read)
        misspelt: list[list[MisspeltMatch]] = [[] for _ in texts]
        near = [self._han_corrector.find(read)]
        if corrections := self._corrector.find(read):
            near.insert(0, _nearest(walk_corrected(read, corrections, self._names.arrays)))
        for found in near:
            if found is not None:
                for row, match in self._matches(texts, read.tokens, self._unambiguous(found)):
                    misspelt[row].append(match)
        return [
            FoundNames(names, _choose(matches, names) if matches else [])
            for names, matches in zip(exact, misspelt, strict=True)
        ]

    def _unambiguous(self, found: Ints) -> Ints:
        """Return one match of each span whose names are all of the same concepts.

        *ezema* is as near to *edema* as to *eczema*, and so neither.
        """
        found = np.unique(found, axis=1)
        spans = found[1] << np.int64(32) | found[2]
        _, first, which, counts = np.unique(
            spans, return_index=True, return_inverse=True, return_counts=True
        )
        is_clear = np.ones(len(first), dtype=bool)
        for span in np.flatnonzero(counts > 1).tolist():
            nodes = found[0, which == span].tolist()
            is_clear[span] = len({self._meant(node) for node in nodes}) == 1
        chosen: Ints = found[:, first[is_clear]]
        return chosen

    def _meant(self, node: int) -> frozenset[int]:
        """Return the concepts of the names of a node."""
        rows = self._names.rows_of(node, "")
        concepts = self._concepts
        return frozenset(rows if concepts is None else (int(concepts[row]) for row in rows))

    @cached_property
    def _corrector(self) -> Corrector:
        return Corrector(self._names.arrays)

    @cached_property
    def _han_corrector(self) -> HanCorrector:
        return HanCorrector(self._names.arrays)

    def _matches(
        self, texts: Sequence[str], tokens: Tokens, found: Ints
    ) -> Iterator[tuple[int, MisspeltMatch]]:
        row, offset = 0, 0
        counts: dict[tuple[int, str], int] = {}  # counted once: a text may be long
        order = tokens.first[found[1]].argsort(kind="stable")
        for node, first, last, edits, wrong in found[:, order].T.tolist():
            start, end = int(tokens.first[first]), int(tokens.last[last])
            while start > offset + len(texts[row]):
                offset, row = offset + len(texts[row]) + 1, row + 1
            text = texts[row][start - offset : end - offset]
            word = texts[row][tokens.first[wrong] - offset : tokens.last[wrong] - offset]
            if not may_be_misspelt(word, texts[row], start - offset, end - offset):
                continue
            if (key := (row, text)) not in counts:
                counts[key] = texts[row].count(text)
            if counts[key] > _MAX_OCCURRENCES:
                continue
            if rows := self._names.rows_of(node, ""):  # names of any case
                yield row, MisspeltMatch(start - offset, end - offset, text, rows, edits)


def _nearest(found: Ints) -> Ints:
    """Return the matches that need no more edits than any other name for their span."""
    if not found.size:
        return found
    spans = found[1] << np.int64(32) | found[2]
    _, which = np.unique(spans, return_inverse=True)
    fewest = np.full(which.max() + 1, np.iinfo(np.int64).max)
    np.minimum.at(fewest, which, found[3])
    return found[:, found[3] == fewest[which]]


def may_be_misspelt(word: str, text: str, start: int, end: int) -> bool:
    """Return whether a word may have errors: no acronym, no proper name, alone in no list.

    Args:
        word: The word.
        text: The text it stands in.
        start: Start of the match that it is a word of.
        end: End of the match.
    """
    low = word.lower()
    if end - start == len(word) and not english_words().isdisjoint((low, low.removesuffix("s"))):
        return False
    if word.isupper():
        return len(word) > _MAX_ACRONYM
    if word[1:] != word[1:].lower():
        return False
    if word[0].isupper() and end - start == len(word) and len(word) < LONG_WORD:
        before = text[:start].rstrip(_BLANKS)
        if before and before[-1] not in _SENTENCE_ENDS:
            return False
    return True


def _choose(found: Sequence[MisspeltMatch], exact: Sequence[NameMatch]) -> list[MisspeltMatch]:
    """Choose of overlapping matches, names as written first."""
    chosen: list[MisspeltMatch] = []
    end, at = 0, 0
    for match in sorted(found, key=lambda each: (each.start, -each.end, each.edits)):
        while at < len(exact) and exact[at].end <= match.start:
            at += 1
        if match.start < end:
            continue
        beside = at
        while beside < len(exact) and _is_within(exact[beside], match):
            beside += 1
        if beside < len(exact) and exact[beside].start < match.end:
            continue
        chosen.append(match)
        end = match.end
    return chosen


def _is_within(name: NameMatch, match: MisspeltMatch) -> bool:
    """Whether a match contains a name and more, and is clearly meant.

    It is with one error (*congestive hart failure* is not *failure*), and with several if most of
    it is outside of the name.
    """
    length, inside = match.end - match.start, name.end - name.start
    is_meant = match.edits == 1 or 2 * inside < length
    return match.start <= name.start and name.end <= match.end and inside < length and is_meant
