"""Tokens with tags (CoNLL), and characters with tags: readers and writers; a token a line.

    -DOCSTART- 91075236

    BRCA1<TAB>B-protein
    is<TAB>O

Empty lines separate sentences, and ``-DOCSTART-`` lines separate documents; in a file without
them every sentence is a document. The text joins tokens by spaces and sentences by line ends; each
sentence is a passage of the kind "tokens". Columns other than the first and the last are ignored.
The tagging schemes IOB1, IOB2 and IOBES are read, and written each by a format of its own.

Of Chinese texts each character has a tag; empty lines separate texts:

    嘴 B_body
    里 O
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path

from biograft.errors import OutputError
from biograft.kb.sources.files import BufferLimit, read_lines
from biograft.kb.sources.format import Probe
from biograft.kb.sources.log import ReadLog
from biograft.text.alignment import split_tokens
from biograft.text.documents import Document, Mention, Passage
from biograft.text.formats.format import (
    DocumentFormat,
    Feature,
    Step,
    file_writer,
    keep_flat_passages,
    replace_characters,
)

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
    """Return the tags of tokens for spans that are sorted and do not overlap.

    Args:
        n_tokens: Number of tokens.
        spans: First token, end and type of each span.
        scheme: Tagging scheme.
        separator: Text between prefix and type.
    """
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
    """Return the offsets of the tokens of a passage of the kind "tokens".

    Args:
        document: A tokenised document.
        passage: One of its passages.
    """
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


_MARK = "-DOCSTART-"
_NO_ID = ("-X-", "O", "")


def recognise(probe: Probe) -> bool:
    """Lines of columns of which the last is a tag; a few may be malformed."""
    lines = [line for line in probe.lines(40) if not line.startswith(_MARK)]
    cells = [_cells(line) for line in lines]
    fitting = sum(len(row) > 1 and is_tag(row[-1]) for row in cells)
    return bool(cells) and fitting * 3 >= len(cells) * 2


def read(path: Path, log: ReadLog) -> Iterator[Document]:
    """Read the documents, or the sentences of a file without ``-DOCSTART-`` lines.

    A sentence with a malformed line is rejected.
    """
    log.opened(path)
    identifier, n_documents = "", 0
    sentences: list[list[list[str]]] = []
    for sentence in _sentences(path, log):
        if isinstance(sentence, str):
            if identifier:
                yield _document(identifier, sentences)
            n_documents += 1
            identifier, sentences = sentence or str(n_documents), []
        elif identifier:
            sentences.append(sentence)
        else:
            n_documents += 1
            if sentence:
                yield _document(str(n_documents), [sentence])
    if identifier:
        yield _document(identifier, sentences)


def _sentences(path: Path, log: ReadLog) -> Iterator[str | list[list[str]]]:
    """Yield the id of each ``-DOCSTART-`` line and the rows of each sentence, none if rejected."""
    rows: list[list[str]] = []
    fault: tuple[int, str] | None = None
    limit = BufferLimit("a sentence", path)
    for number, line in read_tag_lines(path):
        is_mark = line.startswith(_MARK)
        if line.strip() and not is_mark:
            log.read()
            limit.add(line, number)
            cells = _cells(line)
            rows.append(cells)
            log.filter("column", len(cells) - 2 if len(cells) > 2 else 0)
            if len(cells) < 2 or not is_tag(cells[-1]):
                fault = fault or (number, line)
            continue
        if fault is not None:
            log.reject("a sentence with a line that is not token and tag", *fault, path=path)
            yield []
        elif rows:
            yield rows
        rows, fault = [], None
        limit.clear()
        if is_mark:
            log.read()
            name = line.removeprefix(_MARK).strip()
            yield "" if name.split(" ")[0] in _NO_ID else name


def _cells(line: str) -> list[str]:
    return line.split("\t") if "\t" in line else line.split()


def _document(identifier: str, sentences: Iterable[list[list[str]]]) -> Document:
    """Return a document of sentences, a line each."""
    text = ""
    mentions: list[Mention] = []
    passages: list[Passage] = []
    for rows in filter(None, sentences):
        begin = len(text) + bool(passages)
        text += "\n" if passages else ""
        offsets: list[tuple[int, int]] = []
        for cells in rows:
            text += " " if offsets else ""
            offsets.append((len(text), len(text) + len(cells[0])))
            text += cells[0]
        for first, end, kind in decode(cells[-1] for cells in rows):
            span = offsets[first][0], offsets[end - 1][1]
            mentions.append(Mention(*span, text[slice(*span)], type=kind))
        passages.append(Passage(begin, len(text), TOKENS))
    return Document(identifier, text, tuple(mentions), passages=tuple(passages))


def tagged_sentence(identifier: str, tokens: Iterable[str], tags: Iterable[str]) -> Document:
    """Return the document of one sentence.

    Args:
        identifier: Id of the document.
        tokens: Its tokens.
        tags: The tag of each, such as ``B-Disease``.
    """
    rows = [[str(token), str(tag)] for token, tag in zip(tokens, tags, strict=True)]
    for token, tag in rows:
        if not token.strip() or not is_tag(tag):
            raise ValueError(f"{token!r} with {tag!r} is no token with a tag")
    return _document(identifier, [rows])


def _render(scheme: Scheme, document: Document) -> str:
    """Return a document: its id, and a token and its tag a line."""
    lines = [f"{_MARK} {_checked(document)}", ""]
    for passage in document.passages:
        lines += [*_rows(document, passage, scheme), ""]
    return "".join(f"{line}\n" for line in lines)


def _rows(document: Document, passage: Passage, scheme: Scheme) -> Iterator[str]:
    offsets = tokens_of(document, passage)
    starts = {start: i for i, (start, _) in enumerate(offsets)}
    ends = {end: i + 1 for i, (_, end) in enumerate(offsets)}
    spans = [(starts[m.start], ends[m.end], m.type) for m in document.mentions if m.start in starts]
    tags = encode(len(offsets), spans, scheme)
    for (start, end), tag in zip(offsets, tags, strict=True):
        yield f"{document.text[start:end]}\t{tag}"


def _checked(document: Document) -> str:
    """Return the id of a document, checked to be writable."""
    identifier = document.id
    invalid = identifier != identifier.strip() or any(
        character in identifier for character in "\n\r\0"
    )
    if invalid or identifier.split(" ")[0] in _NO_ID:
        raise OutputError(f"document id {identifier!r}: cannot stand in a -DOCSTART- line of CoNLL")
    if any(character in m.type for m in document.mentions for character in "\t\n\r\0"):
        raise OutputError(f"document {identifier}: the name of a type holds a tab or line end")
    return identifier


def _format(scheme: Scheme) -> DocumentFormat:
    return DocumentFormat(
        recognise=recognise,
        read=read,
        write=file_writer(partial(_render, scheme)),
        holds=frozenset({Feature.DOCUMENT_IDS, Feature.TYPES, Feature.PASSAGES}),
        steps=TOKENISE_STEPS,
    )


FORMAT, IOB1, IOBES = map(_format, (Scheme.IOB2, Scheme.IOB1, Scheme.IOBES))


def recognise_characters(probe: Probe) -> bool:
    """Lines of one character, a space and a tag; a few may be malformed."""
    lines = probe.lines(20)
    fitting = sum(line[1:2] == " " and is_tag(line[2:]) for line in lines)
    return bool(lines) and fitting * 3 >= len(lines) * 2


def read_characters(path: Path, log: ReadLog) -> Iterator[Document]:
    """Read the texts, numbered from 1 as ids; a text with a malformed line is rejected.

    Args:
        path: The file, also gzipped.
        log: Counts texts read, and what is doubtful or rejected.
    """
    log.opened(path)
    rows: list[tuple[str, str]] = []
    fault: tuple[int, str] | None = None
    n_texts, limit = 0, BufferLimit("a text", path)
    for number, line in read_tag_lines(path):
        if line:
            log.read()
            limit.add(line, number)
            if line[1:2] == " " and is_tag(line[2:]):
                rows.append((line[0], line[2:]))
            else:
                fault = fault or (number, line)
            continue
        n_texts += bool(rows or fault)
        if fault is not None:
            log.reject("a text with a line that is not character and tag", *fault, path=path)
        elif rows:
            yield _character_document(str(n_texts), rows)
        rows, fault = [], None
        limit.clear()


def _character_document(identifier: str, rows: list[tuple[str, str]]) -> Document:
    text = "".join(char for char, _ in rows)
    spans = decode(tag for _, tag in rows)
    mentions = (Mention(start, end, text[start:end], type=kind) for start, end, kind in spans)
    return Document(identifier, text, tuple(mentions))


def _render_characters(document: Document) -> str:
    """Return a document: a character and its tag a line, and an empty line behind."""
    spans = [(m.start, m.end, m.type) for m in document.mentions]
    if any("\n" in kind for _, _, kind in spans):
        raise OutputError(f"document {document.id}: the name of a type holds a line end")
    tags = encode(len(document.text), spans, Scheme.IOB2, "_")
    rows = [f"{char} {tag}\n" for char, tag in zip(document.text, tags, strict=True)]
    return "".join([*rows, "\n"])


def _fill_empty(document: Document) -> tuple[Document, int]:
    """Replace an empty text by one space, since no line would represent it."""
    return (document, 0) if document.text else (replace(document, text=" "), 1)


CHARACTERS = DocumentFormat(
    recognise=recognise_characters,
    read=read_characters,
    write=file_writer(_render_characters),
    holds=frozenset({Feature.TYPES}),
    steps=(("line ends", replace_characters(r"[\n\0]")), ("documents without text", _fill_empty)),
)
