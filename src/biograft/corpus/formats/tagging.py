"""Spans of tokens as tags: IOB1, IOB2 and IOBES, each read alike and written as asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

OUTSIDE = "O"
_BEGINS = "BSU"
_ENDS = "ESLU"
_LETTERS = frozenset("BIESLUM")


class Scheme(StrEnum):
    """How tags mark where a span begins and ends."""

    IOB1 = "iob1"
    """``B`` only where a span follows one of the same type at once."""
    IOB2 = "iob2"
    """``B`` at the first token of every span."""
    IOBES = "iobes"
    """``E`` at the last token, ``S`` where there is only one."""


def is_tag(tag: str) -> bool:
    """Whether a cell is a tag: ``O``, or a letter alone or with a type behind ``-`` or ``_``."""
    return tag == OUTSIDE or (tag[:1] in _LETTERS and (len(tag) == 1 or tag[1] in "-_"))


def decode(tags: Iterable[str]) -> list[tuple[int, int, str]]:
    """Give the spans (first token, behind the last, type) that tags of any scheme mark.

    >>> decode(["B-X", "I-X", "B-X", "O", "I-Y", "S-Z"])
    [(0, 2, 'X'), (2, 3, 'X'), (4, 5, 'Y'), (5, 6, 'Z')]
    """
    spans: list[tuple[int, int, str]] = []
    goes_on = False
    for place, tag in enumerate(tags):
        letter, kind = tag[:1], tag[2:]
        if letter == OUTSIDE:
            goes_on = False
            continue
        if goes_on and letter not in _BEGINS and spans[-1][2] == kind:
            spans[-1] = (spans[-1][0], place + 1, kind)
        else:
            spans.append((place, place + 1, kind))
        goes_on = letter not in _ENDS
    return spans


def encode(
    n_tokens: int, spans: Sequence[tuple[int, int, str]], scheme: Scheme, separator: str = "-"
) -> list[str]:
    """Give the tags of tokens for spans that are in order and do not overlap."""
    tags = [OUTSIDE] * n_tokens
    before = (0, 0, "")
    for first, end, kind in spans:
        letters = ["I"] * (end - first)
        if scheme is not Scheme.IOB1 or (before[1], before[2]) == (first, kind):
            letters[0] = "B"
        if scheme is Scheme.IOBES:
            letters[-1] = "S" if end - first == 1 else "E"
        tags[first:end] = [letter + (separator + kind if kind else "") for letter in letters]
        before = (first, end, kind)
    return tags
