"""Where a document may be cut: between sentences, else words, never within a mention if possible.

A place is the token before which is cut.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from biograft.objectives.records import Ints
from biograft.streams.annotated.tokenising import TokenisedDocument


def last_sentence_end(document: TokenisedDocument, start: int, limit: int) -> int | None:
    """Give the last place between two sentences after ``start``, at most at ``limit``."""
    row = int(np.searchsorted(document.sentences, limit, side="right")) - 1
    place = int(document.sentences[row]) if row >= 0 else start
    return place if place > start else None


def choose_end(document: TokenisedDocument, start: int, room: int) -> int:
    """Give where a piece of at most ``room`` tokens ends.

    That is between sentences if this leaves no more than half of the room empty, else between
    words, else (in a mention or word longer than the room) anywhere.
    """
    limit = start + room
    if limit >= len(document.tokens):
        return len(document.tokens)
    place = last_sentence_end(document, start, limit)
    if place is not None and place - start >= room / 2:
        return place
    places = free_places(document, start, limit + 1)
    return int(places[-1]) if len(places) else limit


def choose_middle(document: TokenisedDocument, start: int, end: int) -> int | None:
    """Give the place nearest the middle of a piece, between sentences if there is one."""
    inner = document.sentences[(document.sentences > start) & (document.sentences < end)]
    places = inner if len(inner) else free_places(document, start, end)
    if not len(places):
        return None
    return int(places[np.argmin(np.abs(2 * places - start - end))])


def free_places(document: TokenisedDocument, start: int, stop: int) -> Ints:
    """Give the places after ``start`` and before ``stop`` within no word and no mention."""
    places: Ints = np.arange(start + 1, stop)
    free: npt.NDArray[np.bool_] = document.words[places] != document.words[places - 1]
    for first, last in document.mentions[_touched(document, start, stop), :2]:
        free[max(first - start, 0) : max(last - start, 0)] = False
    found: Ints = places[free]
    return found


def _touched(document: TokenisedDocument, start: int, stop: int) -> slice:
    """Say which mentions have a token from ``start`` on and before ``stop``."""
    return slice(
        int(np.searchsorted(document.mentions[:, 1], start)),
        int(np.searchsorted(document.mentions[:, 0], stop)),
    )
