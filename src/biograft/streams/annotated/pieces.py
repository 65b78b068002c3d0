"""Long entities in pieces: where in their tokens sub-entities end, and where the head begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from biograft.corpus.alignment import align_spans
from biograft.corpus.segmentation.segmented import Segmented
from biograft.objectives.records import IGNORED, Ints
from biograft.streams.annotated.counts import PackingCounts

PIECES_VERSION = 2
"""Of what is said of pieces; text packed with another is packed anew."""


class Segmenter(Protocol):
    """Whatever takes entities apart, such as a ``Segmentation``."""

    def segment(self, text: str) -> Segmented:
        """Give the pieces of an entity."""


class Pieces(NamedTuple):
    """Of the mentions of a text, what their tokens are in long ones."""

    heads: Ints
    """Of each mention, how many of its tokens stand before its head; ``IGNORED`` if it is short, or
    if something else follows the head."""
    ends: Ints
    """Of each token, 1 where a piece of a long mention ends, 0 in one, else ``IGNORED``."""


class PieceFinder:
    """Segments mentions, equal ones once."""

    def __init__(self, segmenter: Segmenter) -> None:
        self._segmenter = segmenter
        self._known: dict[str, Segmented] = {}

    def find(
        self,
        text: str,
        offsets: Ints,
        mentions: Ints,
        spans: Sequence[tuple[int, int]],
        counts: PackingCounts,
    ) -> Pieces:
        """Find the pieces of mentions (rows: first token, last token) that have these spans.

        An entity whose pieces share a token, as in the middle of a word, is a short one here. Signs
        behind the last piece, as a closing bracket, are of it: an entity ends where its last piece
        does. Where anything follows the head, a bracket or "of the wall", the head is not told.
        """
        heads = np.full(len(mentions), IGNORED, np.int64)
        ends = np.full(len(offsets), IGNORED, np.int64)
        for number, (start, end) in enumerate(spans):
            cut = self._segment(text[start:end])
            if not cut.is_long:
                continue
            first, last = mentions[number, :2].tolist()
            parts = [*cut.pieces, cut.adjective, cut.head]
            places = align_spans(offsets, [(start + s, start + e) for s, e in parts])
            pieces, adjective, head = places[:-2], places[-2].tolist(), places[-1].tolist()
            if not _are_apart(pieces, first, last):
                counts.n_without_pieces += 1
                continue
            ends[first : last + 1] = 0
            ends[[*pieces[:-1, 1], last]] = 1
            if first <= adjective[0] <= adjective[1] < head[0] and head[1] == last:
                heads[number] = head[0] - first
            else:
                counts.n_without_head += 1
        return Pieces(heads, ends)

    def _segment(self, entity: str) -> Segmented:
        if entity not in self._known:
            self._known[entity] = self._segmenter.segment(entity)
        return self._known[entity]


def _are_apart(pieces: Ints, first: int, last: int) -> bool:
    """Whether pieces have tokens of their own, one behind the other, within a mention."""
    starts, ends = pieces.T
    inside = first <= starts[0] and ends[-1] <= last
    return bool(inside and (starts <= ends).all() and (ends[:-1] < starts[1:]).all())
