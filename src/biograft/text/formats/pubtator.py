"""PubTator: reader and writer.

1234|t|A title.
1234|a|An abstract.
1234<TAB>2<TAB>7<TAB>title<TAB>Disease<TAB>D001
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from biograft.errors import FormatError, OutputError
from biograft.kb.names import whole_number
from biograft.kb.sources.files import read_lines
from biograft.kb.sources.format import Probe
from biograft.kb.sources.log import ReadLog
from biograft.text.documents import Document, Mention, Passage, Relation
from biograft.text.formats.format import (
    DocumentFormat,
    Feature,
    OffsetChecker,
    file_writer,
    rename_roles,
    replace_characters,
)

_TEXT_LINE = re.compile(r"([^|\t]+)\|([ta])\|(.*)", re.DOTALL)
_NO_OFFSET = re.compile(r"[-+]\d+|[-+]?\d*[.,]\d+")
_SENTENCE = re.compile(r"(?<=[.?!]) (?=\S)")
_CID_ROLES = ("Chemical", "Disease")
_SEPARATORS = re.compile(r"[\t\n\r\0]")
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

    Wrong offsets of a mention are corrected if its text occurs nearby, else the mention is
    rejected.

    Args:
        path: The file.
        log: Counts what is doubtful or rejected; without one, malformed lines raise a
            ``FormatError``.
        language: Language of the documents, such as ``en``, if it is known.
    """
    path = path if isinstance(path, Path) else Path(path)
    parser = _PubTatorParser(path, log or ReadLog(path), language, strict=log is None)
    parser.log.opened(path)
    for number, line in read_lines(path):
        if not line.strip():
            continue
        parser.log.read()
        match = _TEXT_LINE.fullmatch(line)
        if match and match[2] == "t":
            yield from parser.finish()
            parser.begin(match[1], match[3])
        elif parser.id is None:
            parser.fail("no title comes before this", number, line)
        elif match:
            parser.add_abstract(match, number)
        else:
            parser.add_row(line, number)
    yield from parser.finish()
    if not parser.n_documents:
        raise FormatError("holds no title line", path=path, remedy=_REMEDY)


class _PubTatorParser:
    """Parses the lines of one document after the other."""

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
        """Yield the document whose lines have been parsed, if any."""
        if self.id is None:
            return
        self.n_documents += 1
        passages = passages_of(self._title, self._abstract)
        yield Document(
            self.id,
            self._text,
            tuple(self._mentions),
            self._language,
            tuple(self._relations),
            passages,
        )

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
        if len(columns) > 2 and _NO_OFFSET.fullmatch(columns[1]):
            self.fail("an offset that is no whole number from 0", number, line, _REMEDY)
        elif len(columns) < 2 or not columns[1].isdecimal():
            if len(columns) < 3:
                self.fail("is no line of a PubTator file", number, line, _REMEDY)
            else:
                kind, refs = columns[1], columns[2:]
                arguments = tuple(zip(_roles(kind, len(refs)), refs, strict=True))
                self._relations.append(Relation(kind, arguments, of="concepts"))
        elif not (5 <= len(columns) <= 7 and self._add_mention(columns, number, line)):
            problem = "a mention in other columns than the format has"
            self.fail(problem, number, line, _REMEDY)

    def _add_mention(self, columns: list[str], number: int, line: str) -> bool:
        start, end = map(whole_number, columns[1:3])
        if start is None or end is None:
            return False
        text, kind, *rest = columns[3:]
        checker = OffsetChecker(self._text, self.log, self._path)
        mention = checker.mention(((start, end),), text, number, line)
        if mention is not None:
            concepts = _concepts(rest[0] if rest else "")
            parts = tuple(rest[1].split("|")) if rest[1:] and rest[1] else ()
            self._mentions.append(replace(mention, concepts=concepts, type=kind, parts=parts))
        return True

    def _is_own(self, identifier: str, number: int, line: str) -> bool:
        if identifier == self.id:
            return True
        self.fail(
            f"belongs to document {identifier!r}, not to {self.id!r} before it"
            if self._strict
            else "belongs to another document than the one before it",
            number,
            line,
            "expected the lines of a document to stand together",
        )
        return False


def _roles(kind: str, n: int) -> tuple[str, ...]:
    """Return names for the roles of the arguments, which the format does not have."""
    return _CID_ROLES if (kind, n) == ("CID", 2) else tuple(f"Arg{i + 1}" for i in range(n))


def passages_of(title: str, abstract: str) -> tuple[Passage, ...]:
    """Return the passages of title and abstract in their common text, without empty ones.

    Args:
        title: Text of the title.
        abstract: Text of the abstract.
    """
    end = len(title)
    both = (Passage(0, end, "title"), Passage(end + 1, end + 1 + len(abstract), "abstract"))
    return tuple(passage for passage in both if passage.start < passage.end)


def _concepts(cell: str) -> tuple[str, ...]:
    """Split concept ids, which are joined by ``|`` or ``+``; ``-1`` means none."""
    parts = (part.strip() for part in cell.replace("+", "|").split("|"))
    return tuple(part for part in parts if part not in _NO_CONCEPT)


def write_pubtator(
    documents: Iterable[Document], path: str | Path, *, overwrite: bool = False
) -> None:
    """Write documents; the title is the passage of that kind, else the first sentence.

    What the format cannot hold raises an ``OutputError``;
    :func:`biograft.text.formats.write_documents` drops and counts what can be dropped.

    Args:
        documents: Documents.
        path: File to write.
        overwrite: Replace a file that exists.
    """
    _write(documents, Path(path), overwrite)


def document_text(document: Document) -> str:
    """Return all lines of a document, with the empty one that ends it."""
    check(document)
    lines = [*document_lines(split_title_abstract(document)[0]), ""]
    return "".join(f"{line}\n" for line in lines)


def document_lines(document: Document) -> Iterator[str]:
    """Yield the lines of a document that has been split and checked."""
    cut = _cut(document)
    yield f"{document.id}|t|{document.text[:cut]}"
    yield f"{document.id}|a|{document.text[cut + 1 :]}"
    for m in document.mentions:
        cells = [
            document.id,
            str(m.start),
            str(m.end),
            m.text,
            m.type,
            "|".join(m.concepts) or "-1",
        ]
        yield "\t".join([*cells, "|".join(m.parts)] if m.parts else cells)
    for relation in document.relations:
        yield "\t".join([document.id, relation.type, *(ref for _, ref in relation.arguments)])


def _cut(document: Document) -> int:
    """Return where the title ends: at the bound of a passage, else after the first sentence."""
    text = document.text
    for passage in document.passages:
        if passage.kind == "title" and passage.start == 0:
            rest = text[passage.end :]
            if not rest or (rest[0] == " " and len(rest) > 1):
                return passage.end
        if passage.kind == "abstract" and 0 < passage.start < passage.end == len(text):
            cut = passage.start - 1
            if text[cut] == " ":
                return cut
    boundary = _SENTENCE.search(text)
    return boundary.start() if boundary else len(text)


def check(document: Document) -> None:
    """Raise an ``OutputError`` for what the format cannot hold."""
    if not document.id.strip() or re.search(r"[|\t\n\r\0]", document.id):
        raise OutputError(
            f"document id {document.id!r}: PubTator takes none that is empty or has `|`, tabs or "
            "line ends"
        )
    where = f"document {document.id}: "
    if re.search(r"[\n\r\0]", document.text):
        raise OutputError(
            f"{where}its text holds a line end, which PubTator cannot; make it a space first"
        )
    for mention in document.mentions:
        if reason := _unwritable(document, mention):
            raise OutputError(f"{where}mention {mention.text!r} at {mention.start}: {reason}")
    for relation in document.relations:
        if reason := _unwritable_relation(relation):
            raise OutputError(f"{where}relation {relation.type!r}: {reason}")


def _unwritable(document: Document, mention: Mention) -> str:
    """Return why a mention cannot be written; nothing if it can."""
    text = document.text[mention.start : mention.end]
    if not (0 <= mention.start < mention.end) or text != mention.text:
        return f"the text has {text!r} there; PubTator has no mentions with gaps"
    if _SEPARATORS.search("".join([mention.text, mention.type, *mention.parts])):
        return "holds a tab or line end, which separate the columns of PubTator"
    for concept in mention.concepts:
        if concept in ("", "-1") or concept != concept.strip() or re.search(r"[|+\s]", concept):
            return f"concept {concept!r} holds a separator of ids in PubTator, or means none"
    if any("|" in part for part in mention.parts) or mention.parts == ("",):
        return "a part of it is empty or holds `|`, which separates them in PubTator"
    return ""


def _unwritable_relation(relation: Relation) -> str:
    refs = [ref for _, ref in relation.arguments]
    if relation.of != "concepts" or not refs:
        return "PubTator has relations between concepts only"
    if relation.type.isdecimal() or _SEPARATORS.search("".join([relation.type, *refs])):
        return "its name is a number, or holds a tab or line end with its ids"
    return ""


def split_title_abstract(document: Document) -> tuple[Document, int]:
    """Split the text of a document into title and abstract, the only passages of the format."""
    cut = _cut(document)
    passages = passages_of(document.text[:cut], document.text[cut + 1 :])
    n = sum(passage not in passages for passage in document.passages)
    return replace(document, passages=passages), n


_write = file_writer(document_text)
FORMAT = DocumentFormat(
    recognise=recognise,
    read=read_pubtator,
    write=_write,
    holds=frozenset(
        {
            Feature.DOCUMENT_IDS,
            Feature.PASSAGES,
            Feature.NESTING,
            Feature.TYPES,
            Feature.CONCEPTS,
            Feature.PARTS,
            Feature.CONCEPT_RELATIONS,
        }
    ),
    steps=(
        ("line ends and tabs", replace_characters(r"[\t\n\r\0]")),
        ("passages", split_title_abstract),
        ("roles of relations", rename_roles(lambda r: _roles(r.type, len(r.arguments)))),
    ),
)
