"""Search names in a store: exact matches first, then prefixes, then names with all words.

This is for browsing a store, not for linking: it scans all names once, which takes about a
second for ten million of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from biograft.kb.concept import Match
from biograft.kb.names import APOSTROPHES, normalise
from biograft.kb.store import KnowledgeBase

MAX_CANDIDATES = 20_000
"""Maximum number of names that are ranked; the shortest ones if more contain all words."""

MAX_SEARCHED = 100
"""Characters of a word by which names are looked through; those found are compared with all."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    rank: tuple[int, int, int]
    row: int
    how: str


def search_names(
    base: KnowledgeBase, text: str, *, limit: int = 10, language: str | None = None
) -> list[Match]:
    """Return at most ``limit`` concepts by a name or a part of one, best match first.

    >>> [match.name for match in search_names(kb, "diabetes", limit=2)]
    ['diabetes', 'diabetes medicine']
    """
    matches = {match.concept: match for match in base.find(text, language=language)}
    if len(matches) < limit:
        for candidate in _scan(base, text, language):
            match = base.match(candidate.row, candidate.how)
            matches.setdefault(match.concept, match)
            if len(matches) >= limit:
                break
    return list(matches.values())[:limit]


def _scan(base: KnowledgeBase, text: str, language: str | None) -> list[_Candidate]:
    """Scan all names for those that contain every word of the query."""
    query = normalise(text)
    words = query.split()
    if not words or not query.isprintable():
        return []
    table = base.table("names")
    column = pl.from_arrow(table.column("text"))
    assert isinstance(column, pl.Series)
    rows = np.arange(len(column), dtype=np.intp)
    if language is not None:
        tag = base.languages.index(language) if language in base.languages else -1
        rows = np.flatnonzero(table.column("language").to_numpy() == tag)
    for word in sorted(set(words), key=len, reverse=True):
        rows = rows[_rows_with(column[rows], word[:MAX_SEARCHED])]
    candidates = []
    for row in _shortest(column, rows).tolist():
        key = normalise(column[row])
        if all(word in key for word in words):
            prefix = key.startswith(query)
            rank = (0 if prefix else 1, len(key), row)
            candidates.append(_Candidate(rank, row, "prefix" if prefix else "words"))
    return sorted(candidates, key=lambda candidate: candidate.rank)


def _shortest(names: pl.Series, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Keep the shortest names if there are too many to rank."""
    if len(rows) <= MAX_CANDIDATES:
        return rows
    lengths = names[rows].str.len_bytes().to_numpy()
    return rows[np.argsort(lengths, kind="stable")[:MAX_CANDIDATES]]


def _rows_with(names: pl.Series, word: str) -> npt.NDArray[np.intp]:
    """Return the names whose keys may contain a word.

    ASCII names differ from their keys in case only; the few other names are normalised first.
    """
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
