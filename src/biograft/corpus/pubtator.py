"""The PubTator format: a title line, an abstract line, one line per mention.

    10192393|t|A common human skin tumour ...
    10192393|a|WNT signalling orchestrates ...
    10192393<TAB>15<TAB>26<TAB>skin tumour<TAB>DiseaseClass<TAB>D012878

Offsets count from the beginning of the title, with one blank between title and abstract.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from biograft.documents import Document, Mention
from biograft.errors import FormatError, OutputError
from biograft.runs import new_file
from biograft.sources.files import read_lines
from biograft.sources.log import ReadLog

_TEXT_LINE = re.compile(r"([^|\t]+)\|([ta])\|(.*)", re.DOTALL)
_NO_CONCEPT = ("", "-1")
_SEARCHED = 20
"""How far from its place a mention is looked for whose offsets are wrong, in characters."""
_SENTENCE = re.compile(r"(?<=[.?!]) (?=\S)")
_REMEDY = (
    "expected `ID|t|TITLE`, `ID|a|ABSTRACT` or `ID<TAB>START<TAB>END<TAB>TEXT<TAB>TYPE<TAB>CONCEPT`"
)


def read_pubtator(
    path: str | Path, log: ReadLog | None = None, *, language: str = ""
) -> Iterator[Document]:
    """Read the documents of a file, plain or gzipped.

    A mention whose offsets do not fit its text is set right if the text stands nearby, else
    rejected; the log tells how many. Relations between concepts are left out and counted.
    """
    path = Path(path)
    log = log or ReadLog(path)
    log.opened(path)
    reading: _Reading | None = None
    for number, line in read_lines(path):
        if not line.strip():
            continue
        log.read()
        match = _TEXT_LINE.fullmatch(line)
        if match and match[2] == "t":
            if reading is not None:
                yield reading.document(language)
            reading = _Reading(match[1], match[3], path, log)
        elif reading is None:
            raise FormatError("no title comes before this", path=path, line=number, text=line)
        elif match:
            reading.add_abstract(match[1], match[3], number)
        else:
            reading.add_row(line, number)
    if reading is not None:
        yield reading.document(language)


class _Reading:
    """A document as far as it has been read."""

    def __init__(self, identifier: str, title: str, path: Path, log: ReadLog) -> None:
        self.id, self.text = identifier, title
        self._path, self._log = path, log
        self._has_abstract = False
        self._mentions: list[Mention] = []

    def document(self, language: str) -> Document:
        return Document(self.id, self.text, tuple(self._mentions), language)

    def add_abstract(self, identifier: str, abstract: str, number: int) -> None:
        self._check_id(identifier, number)
        if self._has_abstract or self._mentions:
            raise FormatError(
                "an abstract out of place", path=self._path, line=number, text=abstract,
                remedy="expected it once, behind the title",
            )  # fmt: skip
        self._has_abstract = True
        if abstract:
            self.text += f" {abstract}"

    def add_row(self, line: str, number: int) -> None:
        columns = line.split("\t")
        self._check_id(columns[0], number)
        if len(columns) < 2 or not columns[1].isdecimal():
            if len(columns) < 3:
                raise FormatError(
                    "is no line of a PubTator file", path=self._path, line=number, text=line,
                    remedy=_REMEDY,
                )  # fmt: skip
            self._log.filter("relation")
            return
        if not (5 <= len(columns) <= 7 and columns[2].isdecimal()):
            raise FormatError(
                "a mention in other columns than the format has", path=self._path, line=number,
                text=line, remedy=_REMEDY,
            )  # fmt: skip
        start, end, text, kind, *rest = columns[1:]
        span = self._place(int(start), int(end), text, (number, line))
        if span is not None:
            found = self.text[slice(*span)]
            concepts = _concepts(rest[0] if rest else "")
            self._mentions.append(Mention(*span, found, concepts, kind))

    def _place(
        self, start: int, end: int, text: str, where: tuple[int, str]
    ) -> tuple[int, int] | None:
        """Give the place of a mention, set right where it must be."""
        if start < end and self.text[start:end] == text:
            return start, end
        bare = text.strip()
        low = max(0, start - _SEARCHED)
        window = self.text[low : start + len(bare) + _SEARCHED]
        places = [m.start() + low for m in re.finditer(f"(?={re.escape(bare)})", window)]
        if not bare or not places:
            self._log.reject("offsets do not fit the text", *where)
            return None
        self._log.doubt("offsets were set right", *where)
        nearest = min(places, key=lambda place: (abs(place - start), place))
        return nearest, nearest + len(bare)

    def _check_id(self, identifier: str, number: int) -> None:
        if identifier != self.id:
            raise FormatError(
                f"belongs to document {identifier!r}, not to {self.id!r} before it",
                path=self._path,
                line=number,
                remedy="expected the lines of a document to stand together",
            )


def _concepts(cell: str) -> tuple[str, ...]:
    """Split the cell of ids: several are joined by ``|`` or ``+``, ``-1`` means none."""
    parts = (part.strip() for part in cell.replace("+", "|").split("|"))
    return tuple(part for part in parts if part not in _NO_CONCEPT)


def write_pubtator(
    documents: Iterable[Document], path: str | Path, *, overwrite: bool = False
) -> None:
    """Write documents; the first sentence is the title. Reading the file gives them back.

    The language of a document has no place in the format, nor has a mention with gaps.
    """
    with new_file(Path(path), overwrite=overwrite) as file:
        for document in documents:
            _check(document)
            title, *rest = _SENTENCE.split(document.text, maxsplit=1)
            lines = [f"{document.id}|t|{title}", f"{document.id}|a|{''.join(rest)}"]
            lines += [_row(document, mention) for mention in document.mentions]
            file.write("".join(f"{line}\n" for line in [*lines, ""]).encode())


def _row(document: Document, mention: Mention) -> str:
    concepts = "|".join(mention.concepts) or "-1"
    cells = (document.id, mention.start, mention.end, mention.text, mention.type, concepts)
    return "\t".join(map(str, cells))


def _check(document: Document) -> None:
    """Refuse what the format cannot hold, rather than write what reads differently."""
    if not document.id.strip() or re.search(r"[|\t\n\r\0]", document.id):
        raise OutputError(
            f"document id {document.id!r}: PubTator takes no empty one, nor `|`, tabs, line ends"
        )
    where = f"document {document.id}: "
    if re.search(r"[\n\r\0]", document.text):
        raise OutputError(
            f"{where}its text holds a line end, which PubTator cannot; make it a blank first"
        )
    if not document.text.isascii() and any("\ud800" <= c <= "\udfff" for c in document.text):
        raise OutputError(f"{where}its text holds half a surrogate pair, which no file can")
    for mention in document.mentions:
        if reason := _unwritable(document, mention):
            raise OutputError(f"{where}mention {mention.text!r} at {mention.start}: {reason}")


def _unwritable(document: Document, mention: Mention) -> str:
    """Say why a mention cannot be written; nothing if it can."""
    found = document.text[mention.start : mention.end]
    if not (0 <= mention.start < mention.end) or found != mention.text:
        return f"the text has {found!r} there; PubTator has no mentions with gaps"
    if re.search(r"[\t\n\r\0]", mention.text + mention.type):
        return "holds a tab or line end, which part the columns of PubTator"
    for concept in mention.concepts:
        if concept in _NO_CONCEPT or concept != concept.strip() or re.search(r"[|+\s]", concept):
            return f"concept {concept!r} holds what parts ids in PubTator, or means none"
    return ""
