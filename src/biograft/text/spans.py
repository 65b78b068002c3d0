"""Spans of documents in columns, and the choice of those that do not overlap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.compute import njit

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class Spans(NamedTuple):
    """Spans of several documents, in columns."""

    document: Ints
    """Index of the document."""
    start: Ints
    end: Ints

    def take(self, rows: Ints | Flags) -> Spans:
        """Return the spans of some rows."""
        return Spans(*(column[rows] for column in self))


def select_disjoint(spans: Spans, scores: Floats) -> Ints:
    """Return the rows of spans that do not overlap, sorted by position.

    Of overlapping spans the longest is kept, of equally long ones the best-scored, then the first.
    """
    if not len(spans.start):
        return np.zeros(0, np.int64)
    # concatenate the documents, so that one array of characters serves all
    lengths = np.zeros(spans.document.max() + 2, np.int64)
    np.maximum.at(lengths, spans.document + 1, spans.end)
    shift = np.cumsum(lengths)[spans.document]
    start, end = spans.start + shift, spans.end + shift
    order = np.lexsort((start, -scores, start - end))
    kept: Flags = _disjoint(start[order], end[order], int(end.max()))
    chosen = order[kept]
    rows: Ints = chosen[np.argsort(start[chosen])]
    return rows


@njit()
def _disjoint(start: Ints, end: Ints, n_characters: int) -> Flags:
    """Take spans in order unless an end is covered by a taken one, which is at least as long."""
    taken = np.zeros(n_characters, np.bool_)
    kept = np.zeros(len(start), np.bool_)
    for n in range(len(start)):
        if not (taken[start[n]] or taken[end[n] - 1]):
            kept[n] = True
            taken[start[n] : end[n]] = True
    return kept
