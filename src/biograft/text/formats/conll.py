"""CoNLL (IOB1, IOB2, IOBES): reader and writer; one token and its tag per line.

    -DOCSTART- 91075236

    BRCA1<TAB>B-protein
    is<TAB>O

Empty lines separate sentences, and ``-DOCSTART-`` lines separate documents; in a file without
them every sentence is a document. The text joins tokens by spaces and sentences by line ends; each
sentence is a passage of the kind "tokens". Columns other than the first and the last are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from biograft.artifacts import new_file
from biograft.errors import OutputError
from biograft.kb.sources.files import BufferLimit
from biograft.kb.sources.format import Probe
from biograft.kb.sources.log import ReadLog
from biograft.text.documents import Document, Mention, Passage
from biograft.text.formats.fields import encode_text
from biograft.text.formats.format import DocumentFormat, Feature
from biograft.text.formats.tokenised import (
    TOKENISE_STEPS,
    TOKENS,
    Scheme,
    decode,
    encode,
    is_tag,
    read_tag_lines,
    tokens_of,
)

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
    document: _ConllDocument | None = None
    n_documents = 0
    for sentence in _sentences(path, log):
        if isinstance(sentence, str):
            if document is not None:
                yield document.finish()
            n_documents += 1
            document = _ConllDocument(sentence or str(n_documents))
        elif document is not None:
            document.add(sentence)
        else:
            n_documents += 1
            single = _ConllDocument(str(n_documents))
            single.add(sentence)
            if sentence:
                yield single.finish()
    if document is not None:
        yield document.finish()


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


class _ConllDocument:
    """Collects the sentences of one document."""

    def __init__(self, identifier: str) -> None:
        self._id = identifier
        self._text = ""
        self._mentions: list[Mention] = []
        self._passages: list[Passage] = []

    def add(self, rows: list[list[str]]) -> None:
        """Add a sentence; a rejected one has no rows."""
        if not rows:
            return
        begin = len(self._text) + bool(self._passages)
        sentence = ""
        offsets: list[tuple[int, int]] = []
        for cells in rows:
            sentence += " " if offsets else ""
            offsets.append((begin + len(sentence), begin + len(sentence) + len(cells[0])))
            sentence += cells[0]
        self._text += ("\n" if self._passages else "") + sentence
        for first, end, kind in decode(cells[-1] for cells in rows):
            span = offsets[first][0], offsets[end - 1][1]
            self._mentions.append(Mention(*span, self._text[slice(*span)], type=kind))
        self._passages.append(Passage(begin, len(self._text), TOKENS))

    def finish(self) -> Document:
        mentions, passages = tuple(self._mentions), tuple(self._passages)
        return Document(self._id, self._text, mentions, passages=passages)


def write(
    scheme: Scheme, documents: Iterable[Document], path: Path, overwrite: bool = False
) -> None:
    """Write tokenised documents, each after a ``-DOCSTART-`` line."""
    with new_file(path, overwrite=overwrite) as file:
        for document in documents:
            lines = [f"{_MARK} {_checked(document)}", ""]
            for passage in document.passages:
                lines += [*_rows(document, passage, scheme), ""]
            file.write(encode_text("".join(f"{line}\n" for line in lines), document))


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


def _format(recognise: Callable[[Probe], bool], scheme: Scheme) -> DocumentFormat:
    return DocumentFormat(
        recognise=recognise,
        read=read,
        write=partial(write, scheme),
        holds=frozenset({Feature.DOCUMENT_IDS, Feature.TYPES, Feature.PASSAGES}),
        steps=TOKENISE_STEPS,
    )


FORMAT = _format(recognise, Scheme.IOB2)
IOB1 = _format(recognise, Scheme.IOB1)
IOBES = _format(recognise, Scheme.IOBES)
