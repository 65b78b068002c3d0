"""Spans of tokens as tags: IOB1, IOB2 and IOBES, each read alike and written as asked."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum

from biograft.corpus.alignment import split_tokens
from biograft.corpus.formats.format import Feature, Step, blank_out, keep_flat_passages
from biograft.documents import Document, Mention, Passage

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


TOKENS = "tokens"
"""The kind of a passage whose tokens are parted by single blanks."""

_Places = list[tuple[int, int]]

_KEPT_KINDS = (TOKENS, "sentence")
_NOT_PARTED = re.compile(r"[^\S ]|  |^ | $|-DOCSTART-")


def tokens_of(document: Document, passage: Passage) -> _Places:
    """Say where the tokens of a passage stand whose tokens are parted by blanks."""
    words = re.finditer("[^ ]+", document.text[passage.start : passage.end])
    return [(passage.start + w.start(), passage.start + w.end()) for w in words]


def _settle_text(document: Document) -> tuple[Document, int]:
    """Write the text anew as tokens, with every mention on whole tokens; 1 if that changed it."""
    cuts = sorted({bound for m in document.mentions for bound in (m.start, m.end)})
    text, passages = "", []
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    for section in _sections(document):
        places = _tokens(document, section, cuts)
        if not places:
            continue
        begin = len(text) + bool(text)
        text += "\n" if text else ""
        for number, (start, end) in enumerate(places):
            text += " " if number else ""
            starts[start] = len(text)
            text += document.text[start:end]
            ends[end] = len(text)
        passages.append(Passage(begin, len(text), TOKENS))
    moved = tuple(_moved(m, starts, ends, text) for m in document.mentions)
    kept = tuple(mention for mention in moved if mention is not None)
    changed = replace(document, text=text, mentions=kept, passages=tuple(passages))
    return changed, int(text != document.text)


def _sections(document: Document) -> Iterator[Passage]:
    """Cover the text with its passages and what lies between; no mention lies across a bound."""
    inside = [(m.start, m.end) for m in document.mentions]
    bounds = {bound for p in document.passages for bound in (p.start, p.end)}
    fine = {b for b in bounds if not any(start < b < end for start, end in inside)}
    marks = sorted({0, len(document.text)} | fine)
    kinds = {(p.start, p.end): p.kind for p in document.passages}
    for start, end in itertools.pairwise(marks):
        yield Passage(start, end, kinds.get((start, end), ""))


def _tokens(document: Document, section: Passage, cuts: list[int]) -> _Places:
    """Take a section apart: at its blanks if it says so, else by kinds of characters."""
    text = document.text[section.start : section.end]
    if section.kind == TOKENS and not _NOT_PARTED.search(text):
        places = tokens_of(document, section)
        bounds = {bound for place in places for bound in place}
        if all(cut in bounds for cut in cuts if section.start <= cut <= section.end):
            return places
    found = []
    for first, behind in split_tokens(text):
        start, end = section.start + first, section.start + behind
        marks = [start, *cuts[bisect_right(cuts, start) : bisect_left(cuts, end)], end]
        found += list(itertools.pairwise(marks))
    return found


def _moved(
    mention: Mention, starts: dict[int, int], ends: dict[int, int], text: str
) -> Mention | None:
    """Find a mention in the new text; nowhere if it covers no token."""
    start = next((starts[i] for i in range(mention.start, mention.end) if i in starts), None)
    end = next((ends[i] for i in range(mention.end, mention.start, -1) if i in ends), None)
    if start is None or end is None:
        return None
    return replace(mention, start=start, end=end, text=text[start:end])


def _count_passages(document: Document) -> tuple[Document, int]:
    """Count the passages whose kind or bounds will not be read back; they still part the text."""
    sections = {(s.start, s.end) for s in _sections(document)}
    n = sum(
        p.kind not in _KEPT_KINDS or (p.start, p.end) not in sections for p in document.passages
    )
    return document, n


def _drop_blank_mentions(document: Document) -> tuple[Document, int]:
    """Leave out mentions of blanks only, on which no token stands."""
    kept = tuple(m for m in document.mentions if m.text.strip())
    return replace(document, mentions=kept), len(document.mentions) - len(kept)


TOKENISING: tuple[tuple[str, Step], ...] = (
    ("control characters", blank_out("\0")),
    ("mentions of blanks", _drop_blank_mentions),
    (str(Feature.PASSAGES), keep_flat_passages),
    (str(Feature.PASSAGES), _count_passages),
    ("blanks between tokens", _settle_text),
)
"""The steps that make a document one of tokens, by what each loses."""
