"""Tagging schemes IOB1, IOB2 and IOBES, and documents as sequences of tokens."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from biograft.kb.sources.files import read_lines
from biograft.text.alignment import split_tokens
from biograft.text.documents import Document, Mention, Passage
from biograft.text.formats.format import Feature, Step, keep_flat_passages, replace_characters

OUTSIDE = "O"
_BEGINS = "BSU"
_ENDS = "ESLU"
_LETTERS = frozenset("BIESLUM")


class Scheme(StrEnum):
    """A tagging scheme: how tags mark where a span begins and ends."""

    IOB1 = "iob1"
    """``B`` only where a span follows one of the same type at once."""
    IOB2 = "iob2"
    """``B`` at the first token of every span."""
    IOBES = "iobes"
    """``E`` at the last token, ``S`` where there is only one."""


def is_tag(tag: str) -> bool:
    """Whether a cell is a tag: ``O``, or a letter alone or with a type behind ``-`` or ``_``."""
    return tag == OUTSIDE or (tag[:1] in _LETTERS and (len(tag) == 1 or tag[1] in "-_"))


def read_tag_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Read the lines of a file and a final empty line, which ends the last sentence."""
    yield from read_lines(path)
    yield 0, ""


def decode(tags: Iterable[str]) -> list[tuple[int, int, str]]:
    """Return the spans (first token, end token, type) that tags of any scheme mark.

    >>> decode(["B-X", "I-X", "B-X", "O", "I-Y", "S-Z"])
    [(0, 2, 'X'), (2, 3, 'X'), (4, 5, 'Y'), (5, 6, 'Z')]
    """
    spans: list[tuple[int, int, str]] = []
    is_open = False
    for position, tag in enumerate(tags):
        prefix, kind = tag[:1], tag[2:]
        if prefix == OUTSIDE:
            is_open = False
            continue
        if is_open and prefix not in _BEGINS and spans[-1][2] == kind:
            spans[-1] = (spans[-1][0], position + 1, kind)
        else:
            spans.append((position, position + 1, kind))
        is_open = prefix not in _ENDS
    return spans


def encode(
    n_tokens: int, spans: Sequence[tuple[int, int, str]], scheme: Scheme, separator: str = "-"
) -> list[str]:
    """Return the tags of tokens for spans that are sorted and do not overlap."""
    tags = [OUTSIDE] * n_tokens
    previous = (0, 0, "")
    for first, end, kind in spans:
        prefixes = ["I"] * (end - first)
        if scheme is not Scheme.IOB1 or (previous[1], previous[2]) == (first, kind):
            prefixes[0] = "B"
        if scheme is Scheme.IOBES:
            prefixes[-1] = "S" if end - first == 1 else "E"
        tags[first:end] = [prefix + (separator + kind if kind else "") for prefix in prefixes]
        previous = (first, end, kind)
    return tags


TOKENS = "tokens"
"""The kind of a passage whose tokens are separated by single spaces."""

_TokenOffsets = list[tuple[int, int]]

_KEPT_KINDS = (TOKENS, "sentence")
_NOT_TOKENISED = re.compile(r"[^\S ]|  |^ | $|-DOCSTART-")


def tokens_of(document: Document, passage: Passage) -> _TokenOffsets:
    """Return the offsets of the tokens of a passage of the kind "tokens"."""
    words = re.finditer("[^ ]+", document.text[passage.start : passage.end])
    return [(passage.start + w.start(), passage.start + w.end()) for w in words]


def _tokenise(document: Document) -> tuple[Document, int]:
    """Tokenise the text so that every mention covers whole tokens; 1 if this changes the text."""
    cuts = sorted({bound for m in document.mentions for bound in (m.start, m.end)})
    text, passages = "", []
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    for section in _sections(document):
        offsets = _tokens(document, section, cuts)
        if not offsets:
            continue
        begin = len(text) + bool(text)
        text += "\n" if text else ""
        for index, (start, end) in enumerate(offsets):
            text += " " if index else ""
            starts[start] = len(text)
            text += document.text[start:end]
            ends[end] = len(text)
        passages.append(Passage(begin, len(text), TOKENS))
    moved = tuple(_moved(m, starts, ends, text) for m in document.mentions)
    mentions = tuple(mention for mention in moved if mention is not None)
    changed = replace(document, text=text, mentions=mentions, passages=tuple(passages))
    return changed, int(text != document.text)


def _sections(document: Document) -> Iterator[Passage]:
    """Cover the text by its passages and the gaps between them; no mention crosses a bound."""
    mentions = [(m.start, m.end) for m in document.mentions]
    bounds = {bound for p in document.passages for bound in (p.start, p.end)}
    valid = {b for b in bounds if not any(start < b < end for start, end in mentions)}
    kinds = {(p.start, p.end): p.kind for p in document.passages}
    for start, end in itertools.pairwise(sorted({0, len(document.text)} | valid)):
        yield Passage(start, end, kinds.get((start, end), ""))


def _tokens(document: Document, section: Passage, cuts: list[int]) -> _TokenOffsets:
    """Tokenise a section: at its spaces if it is of the kind "tokens", else by character class."""
    text = document.text[section.start : section.end]
    if section.kind == TOKENS and not _NOT_TOKENISED.search(text):
        offsets = tokens_of(document, section)
        bounds = {bound for span in offsets for bound in span}
        if all(cut in bounds for cut in cuts if section.start <= cut <= section.end):
            return offsets
    offsets = []
    for first, last in split_tokens(text):
        start, end = section.start + first, section.start + last
        bounds_here = [start, *cuts[bisect_right(cuts, start) : bisect_left(cuts, end)], end]
        offsets += list(itertools.pairwise(bounds_here))
    return offsets


def _moved(
    mention: Mention, starts: dict[int, int], ends: dict[int, int], text: str
) -> Mention | None:
    """Return a mention of the tokenised text; None if it covers no token."""
    start = next((starts[i] for i in range(mention.start, mention.end) if i in starts), None)
    end = next((ends[i] for i in range(mention.end, mention.start, -1) if i in ends), None)
    if start is None or end is None:
        return None
    return replace(mention, start=start, end=end, text=text[start:end])


def _count_passages(document: Document) -> tuple[Document, int]:
    """Count the passages whose kind or bounds will not be read back."""
    sections = {(s.start, s.end) for s in _sections(document)}
    n = sum(
        p.kind not in _KEPT_KINDS or (p.start, p.end) not in sections for p in document.passages
    )
    return document, n


def _drop_whitespace_mentions(document: Document) -> tuple[Document, int]:
    """Drop mentions of whitespace only, which cover no token."""
    mentions = tuple(m for m in document.mentions if m.text.strip())
    return replace(document, mentions=mentions), len(document.mentions) - len(mentions)


TOKENISE_STEPS: tuple[tuple[str, Step], ...] = (
    ("control characters", replace_characters("\0")),
    ("mentions of whitespace", _drop_whitespace_mentions),
    (str(Feature.PASSAGES), keep_flat_passages),
    (str(Feature.PASSAGES), _count_passages),
    ("whitespace between tokens", _tokenise),
)
"""The steps that tokenise a document, each named by its loss."""
