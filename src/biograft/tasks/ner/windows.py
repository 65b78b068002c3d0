"""Texts as sequences for the encoder: whole, or as windows that overlap.

Each word is *owned* by the one window in which it has most context; what other windows say of it
does not count. So predictions of windows are joined without a seam.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from biograft.errors import ConfigError
from biograft.tasks.ner.texts import ReadText
from biograft.tasks.tokens import Ints, TaskTokenizer


@dataclass(frozen=True, slots=True)
class Window:
    """Some words of a text as one sequence."""

    text: int
    """Number of the text."""
    first: int
    """Number of its first word in the text."""
    own: tuple[int, int]
    """The words of the text, first and behind the last, that count from here."""
    tokens: tuple[int, ...]
    places: tuple[int, ...]
    """The first token of each word."""
    tags: tuple[int, ...] = ()
    """Of each word, where they are known and wanted."""
    spans: tuple[tuple[int, int, int], ...] = ()
    """Of entities: first word here, last word (inclusive), type; where they are known."""

    @property
    def n_words(self) -> int:
        """How many words are read."""
        return len(self.places)


def cut_windows(
    number: int, text: ReadText, tokenizer: TaskTokenizer, overlap: int
) -> Iterator[Window]:
    """Give the windows of a text; none for a text without words."""
    if 2 * overlap > tokenizer.room:
        raise ConfigError(
            f"overlap: expected at most half of the {tokenizer.room} tokens read at once, "
            f"found {overlap}"
        )
    if not text.tokens:
        return
    ends = np.cumsum([len(piece) for piece in text.tokens], dtype=np.int64)
    starts = ends - np.array([len(piece) for piece in text.tokens], np.int64)
    bounds = _bounds(starts, ends, tokenizer.room, overlap)
    cuts = [0, *_cuts(bounds, starts, ends), len(ends)]
    for (first, end), own in zip(bounds, pairwise(cuts), strict=True):
        tokens = tokenizer.frame([i for piece in text.tokens[first:end] for i in piece])
        places = starts[first:end] - starts[first] + tokenizer.n_before
        yield Window(number, first, own, tuple(tokens), tuple(places.tolist()))


def _bounds(
    starts: Ints,
    ends: Ints,
    room: int,
    overlap: int,
) -> list[tuple[int, int]]:
    """Give the first word of each window and the one behind its last."""
    found: list[tuple[int, int]] = []
    first, n_words = 0, len(starts)
    while first < n_words:
        end = int(np.searchsorted(ends, starts[first] + room, side="right"))
        found.append((first, end))
        if end == n_words:
            break
        back = int(np.searchsorted(starts, ends[end - 1] - overlap, side="left"))
        first = min(max(back, first + 1), end)
    return found


def _cuts(
    bounds: list[tuple[int, int]],
    starts: Ints,
    ends: Ints,
) -> Iterator[int]:
    """Give the first word of each window but the first that has more context there than before."""
    reached = 0
    for (_, end), (first, _) in pairwise(bounds):
        before = starts[first:end] - starts[first]
        behind = ends[end - 1] - ends[first:end]
        reached = max(reached, first + int(np.searchsorted(before > behind, True)))
        yield reached
