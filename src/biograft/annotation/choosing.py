"""Which of overlapping spans stay, for many documents at once."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class Spans(NamedTuple):
    """Spans of some documents, in columns."""

    document: Ints
    """Number of the document."""
    start: Ints
    end: Ints

    def take(self, rows: Ints | Flags) -> Spans:
        """Take some of them."""
        return Spans(*(column[rows] for column in self))


def take_disjoint(spans: Spans, scores: Floats) -> Ints:
    """Choose spans that do not overlap, in the order of the text.

    The longest stays, of equally long ones the best-scored, of these the first.
    """
    if not len(spans.start):
        return np.zeros(0, np.int64)
    # documents one behind the other, so that one strip of characters does for all
    lengths = np.zeros(spans.document.max() + 2, np.int64)
    np.maximum.at(lengths, spans.document + 1, spans.end)
    shift = np.cumsum(lengths)[spans.document]
    start, end = spans.start + shift, spans.end + shift
    order = np.lexsort((start, -scores, start - end))
    kept: Flags = _disjoint(start[order], end[order], int(end.max()))
    chosen = order[kept]
    rows: Ints = chosen[np.argsort(start[chosen])]
    return rows


@numba.njit(cache=True)
def _disjoint(start: Ints, end: Ints, n_characters: int) -> Flags:
    """Take spans in their order unless one that was taken, which is no shorter, covers an end."""
    taken = np.zeros(n_characters, np.bool_)
    kept = np.zeros(len(start), np.bool_)
    for n in range(len(start)):
        if not (taken[start[n]] or taken[end[n] - 1]):
            kept[n] = True
            taken[start[n] : end[n]] = True
    return kept


def take_best(spans: Spans, scores: Floats, most: int) -> Ints:
    """Choose so many spans of each document, in the order of the text.

    They are the best-scored, of equally good ones the longest, of these the first. ``spans`` are
    in the order of the text.
    """
    order = np.lexsort((spans.start, spans.start - spans.end, -scores, spans.document))
    documents = spans.document[order]
    before = np.searchsorted(documents, documents)
    kept: Ints = np.sort(order[np.arange(len(order)) - before < most])
    return kept
