"""Character-level tags of Chinese texts: reader and writer; empty lines separate texts.

嘴 B_body
里 O
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from biograft.artifacts import new_file
from biograft.errors import OutputError
from biograft.kb.sources.files import BufferLimit
from biograft.kb.sources.format import Probe
from biograft.kb.sources.log import ReadLog
from biograft.text.documents import Document, Mention
from biograft.text.formats.fields import encode_text
from biograft.text.formats.format import DocumentFormat, Feature, replace_characters
from biograft.text.formats.tokenised import Scheme, decode, encode, is_tag, read_tag_lines


def recognise(probe: Probe) -> bool:
    """Lines of one character, a space and a tag; a few may be malformed."""
    lines = probe.lines(20)
    fitting = sum(line[1:2] == " " and is_tag(line[2:]) for line in lines)
    return bool(lines) and fitting * 3 >= len(lines) * 2


def read(path: Path, log: ReadLog) -> Iterator[Document]:
    """Read the texts, numbered from 1 as ids; a text with a malformed line is rejected."""
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
            yield _document(str(n_texts), rows)
        rows, fault = [], None
        limit.clear()


def _document(identifier: str, rows: list[tuple[str, str]]) -> Document:
    text = "".join(char for char, _ in rows)
    spans = decode(tag for _, tag in rows)
    mentions = (Mention(start, end, text[start:end], type=kind) for start, end, kind in spans)
    return Document(identifier, text, tuple(mentions))


def write(documents: Iterable[Document], path: Path, overwrite: bool = False) -> None:
    """Write the texts with IOB2 tags."""
    with new_file(path, overwrite=overwrite) as file:
        for document in documents:
            spans = [(m.start, m.end, m.type) for m in document.mentions]
            if any("\n" in kind for _, _, kind in spans):
                raise OutputError(f"document {document.id}: the name of a type holds a line end")
            tags = encode(len(document.text), spans, Scheme.IOB2, "_")
            rows = [f"{char} {tag}\n" for char, tag in zip(document.text, tags, strict=True)]
            file.write(encode_text("".join([*rows, "\n"]), document))


def _fill_empty(document: Document) -> tuple[Document, int]:
    """Replace an empty text by one space, since no line would represent it."""
    return (document, 0) if document.text else (replace(document, text=" "), 1)


FORMAT = DocumentFormat(
    recognise=recognise,
    read=read,
    write=write,
    holds=frozenset({Feature.TYPES}),
    steps=(("line ends", replace_characters(r"[\n\0]")), ("documents without text", _fill_empty)),
)
