"""Texts as sequences for the encoder: whole, or as windows that overlap.

Each word is *owned* by the one window in which it has most context, and so is each span of words;
what other windows say of it does not count. So predictions of windows are joined without a seam.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from biograft.corpus.alignment import NONE
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
    n_after: int = 0
    """Special tokens behind the text."""

    @property
    def n_words(self) -> int:
        """How many words are read."""
        return len(self.places)

    def holds(self, first: int, last: int) -> bool:
        """Say whether words of the text, the last one included, are read here."""
        return self.first <= first and last < self.first + self.n_words

    def context(self, first: int, last: int) -> int:
        """Count the tokens beside words that are held, on the side where there are fewer."""
        end, behind = len(self.tokens) - self.n_after, last + 1 - self.first
        next_word = self.places[behind] if behind < self.n_words else end
        return min(self.places[first - self.first] - self.places[0], end - next_word)


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
        held = [i for piece in text.tokens[first:end] for i in piece]
        tokens = tokenizer.frame(held)
        places = starts[first:end] - starts[first] + tokenizer.n_before
        n_after = len(tokens) - tokenizer.n_before - len(held)
        yield Window(number, first, own, tuple(tokens), tuple(places.tolist()), n_after=n_after)


def owner_of(windows: Sequence[Window], first: int, last: int) -> int:
    """Give the number of the window that holds words with most context, the first of equal ones.

    ``NONE`` where no window holds them all.
    """
    holding = [number for number, window in enumerate(windows) if window.holds(first, last)]
    return max(holding, key=lambda number: windows[number].context(first, last), default=NONE)


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
