"""The PubTator format: a title line, an abstract line, one line per mention and relation.

    10192393|t|A common human skin tumour ...
    10192393|a|WNT signalling orchestrates ...
    10192393<TAB>15<TAB>26<TAB>skin tumour<TAB>DiseaseClass<TAB>D012878
    10192393<TAB>CID<TAB>D016651<TAB>D003490

Offsets count from the beginning of the title, with one blank between title and abstract. A
seventh column lists the single mentions of a composite one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from biograft.corpus.formats.features import DocumentFormat, Feature
from biograft.corpus.formats.fitting import blank_out
from biograft.corpus.formats.placing import Placer
from biograft.corpus.formats.pubtator_lines import (
    check,
    lines_of,
    parse_relation,
    settle,
    settle_roles,
)
from biograft.documents import Document, Mention, Passage, Relation
from biograft.errors import FormatError
from biograft.runs import new_file
from biograft.sources.files import read_lines
from biograft.sources.format import Probe
from biograft.sources.log import ReadLog

_TEXT_LINE = re.compile(r"([^|\t]+)\|([ta])\|(.*)", re.DOTALL)
_NO_CONCEPT = ("", "-1")
_REMEDY = (
    "expected `ID|t|TITLE`, `ID|a|ABSTRACT` or `ID<TAB>START<TAB>END<TAB>TEXT<TAB>TYPE<TAB>CONCEPT`"
)


def recognise(probe: Probe) -> bool:
    """A first line ``ID|t|TITLE``."""
    return any((match := _TEXT_LINE.match(line)) and match[2] == "t" for line in probe.lines(1))


def read_pubtator(
    path: str | Path, log: ReadLog | None = None, *, language: str = ""
) -> Iterator[Document]:
    """Read the documents of a file, plain or gzipped.

    A mention whose offsets do not fit its text is set right if the text stands nearby, else
    rejected; the log tells how many. A line that is none of the format's is rejected too, and
    stops the reading where no log was given to tell it.
    """
    path = Path(path)
    reading = _Reading(path, log or ReadLog(path), language, strict=log is None)
    reading.log.opened(path)
    for number, line in read_lines(path):
        if not line.strip():
            continue
        reading.log.read()
        match = _TEXT_LINE.fullmatch(line)
        if match and match[2] == "t":
            yield from reading.finish()
            reading.begin(match[1], match[3])
        elif reading.id is None:
            reading.fail("no title comes before this", number, line)
        elif match:
            reading.add_abstract(match, number)
        else:
            reading.add_row(line, number)
    yield from reading.finish()
    if not reading.n_documents:
        raise FormatError("holds no title line", path=path, remedy=_REMEDY)


class _Reading:
    """The document that is being read, as far as it has been."""

    def __init__(self, path: Path, log: ReadLog, language: str, *, strict: bool) -> None:
        self.id: str | None = None
        self.log = log
        self.n_documents = 0
        self._path, self._language, self._strict = path, language, strict
        self._title = self._abstract = ""
        self._has_abstract = False
        self._mentions: list[Mention] = []
        self._relations: list[Relation] = []

    def begin(self, identifier: str, title: str) -> None:
        self.id, self._title, self._abstract = identifier, title, ""
        self._has_abstract = False
        self._mentions, self._relations = [], []

    def finish(self) -> Iterator[Document]:
        """Give the document that has been read, if any."""
        if self.id is None:
            return
        self.n_documents += 1
        passages = passages_of(self._title, self._abstract)
        yield Document(
            self.id, self._text, tuple(self._mentions), self._language,
            tuple(self._relations), passages,
        )  # fmt: skip

    @property
    def _text(self) -> str:
        return f"{self._title} {self._abstract}" if self._abstract else self._title

    def fail(self, problem: str, line: int, text: str, remedy: str = "") -> None:
        if self._strict:
            raise FormatError(problem, path=self._path, line=line, text=text, remedy=remedy)
        self.log.reject(problem, line, text, path=self._path)

    def add_abstract(self, match: re.Match[str], number: int) -> None:
        if not self._is_own(match[1], number, match[0]):
            return
        if self._has_abstract or self._mentions:
            remedy = "expected it once, behind the title"
            self.fail("an abstract out of place", number, match[0], remedy)
            return
        self._has_abstract, self._abstract = True, match[3]

    def add_row(self, line: str, number: int) -> None:
        columns = line.split("\t")
        if not self._is_own(columns[0], number, line):
            return
        if len(columns) < 2 or not columns[1].isdecimal():
            if len(columns) < 3:
                self.fail("is no line of a PubTator file", number, line, _REMEDY)
            else:
                self._relations.append(parse_relation(columns))
        elif 5 <= len(columns) <= 7 and columns[2].isdecimal():
            self._add_mention(columns, number, line)
        else:
            problem = "a mention in other columns than the format has"
            self.fail(problem, number, line, _REMEDY)

    def _add_mention(self, columns: list[str], number: int, line: str) -> None:
        start, end, text, kind, *rest = columns[1:]
        placer = Placer(self._text, self.log, self._path)
        mention = placer.mention(((int(start), int(end)),), text, number, line)
        if mention is not None:
            concepts = _concepts(rest[0] if rest else "")
            parts = tuple(rest[1].split("|")) if rest[1:] and rest[1] else ()
            self._mentions.append(replace(mention, concepts=concepts, type=kind, parts=parts))

    def _is_own(self, identifier: str, number: int, line: str) -> bool:
        if identifier == self.id:
            return True
        self.fail(
            f"belongs to document {identifier!r}, not to {self.id!r} before it"
            if self._strict
            else "belongs to another document than the one before it",
            number, line, "expected the lines of a document to stand together",
        )  # fmt: skip
        return False


def passages_of(title: str, abstract: str) -> tuple[Passage, ...]:
    """Say where title and abstract stand in their common text."""
    end = len(title)
    found = (Passage(0, end, "title"), Passage(end + 1, end + 1 + len(abstract), "abstract"))
    return tuple(passage for passage in found if passage.start < passage.end)


def _concepts(cell: str) -> tuple[str, ...]:
    """Split the cell of ids: several are joined by ``|`` or ``+``, ``-1`` means none."""
    parts = (part.strip() for part in cell.replace("+", "|").split("|"))
    return tuple(part for part in parts if part not in _NO_CONCEPT)


def write_pubtator(
    documents: Iterable[Document], path: str | Path, *, overwrite: bool = False
) -> None:
    """Write documents; the title is the passage of that name, else the first sentence.

    What the format cannot hold is refused; :func:`biograft.corpus.formats.write_documents`
    leaves out what can be left out, and counts it.
    """
    with new_file(Path(path), overwrite=overwrite) as file:
        for document in documents:
            check(document)
            lines = [*lines_of(settle(document)[0]), ""]
            file.write("".join(f"{line}\n" for line in lines).encode())


FORMAT = DocumentFormat(
    recognise=recognise,
    read=read_pubtator,
    write=lambda documents, path, overwrite: write_pubtator(documents, path, overwrite=overwrite),
    holds=frozenset(
        {
            Feature.DOCUMENT_IDS, Feature.PASSAGES, Feature.NESTING, Feature.TYPES,
            Feature.CONCEPTS, Feature.PARTS, Feature.CONCEPT_RELATIONS,
        }
    ),
    steps=(
        ("line ends and tabs", blank_out(r"[\t\n\r\0]")),
        ("passages", settle),
        ("roles of relations", settle_roles),
    ),
)  # fmt: skip
