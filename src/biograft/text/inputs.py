"""Inputs: files, folders, zip archives and standard input as documents, whatever their format.

The format of a file is recognised by its content, or named. What is recognised as annotated
documents, JSON, XML or a table is never read as plain text unasked: its annotations and markup
would be taken for text.

>>> list(Inputs(["notes/", "corpus.xml.gz", "-"]))  # doctest: +SKIP
[Document(id='notes/1.txt', text='No fever.', ...), ...]
"""

from __future__ import annotations

import codecs
import contextlib
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from biograft.errors import (
    ConfigError,
    EncodingError,
    FormatError,
    InputError,
    UnrecognisedError,
)
from biograft.kb.sources.files import (
    exists,
    is_empty,
    read_head,
    read_lines,
    read_text,
    refuse_utf16,
)
from biograft.kb.sources.format import Probe
from biograft.kb.sources.log import ReadLog
from biograft.text.documents import Document
from biograft.text.formats.conll import is_tag
from biograft.text.formats.format import DOCUMENT_FORMATS, DocumentFormat
from biograft.text.input_config import DOCX, HTML, TABLE, TEXT, UTF_8, InputConfig
from biograft.text.rich_text import (
    docx_text,
    html_charset,
    html_text,
    is_html,
    packed_kind,
    refuse_binary,
    refuse_packed,
)
from biograft.text.tables import Row, binary_table, read_table
from biograft.text.virtual_files import (
    GB18030,
    READ_AS_GB18030,
    STDIN,
    VirtualFile,
    is_zip,
    text_encoding,
    transcoded,
    working_encoding,
    zip_members,
)

_WHOLE = (TEXT, HTML, DOCX)
"""Formats whose files are one document."""
_TAGGED = ("char-tags", "conll", "conll-iob1", "conll-iobes")
"""Formats that plain lines resemble by chance: "Hepatitis B" looks like a token and its tag."""
_MIN_TAGGED = 10
"""Lines that all end with a tag and are no chance."""
_ALIKE = (frozenset(_TAGGED), frozenset({"cmedqaner", "cehrner", "jsonl"}))
"""Formats of which one may be named where another is recognised."""
_BY_SUFFIX = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".pubtator": "pubtator",
    ".conll": "conll",
}
"""The format of files whose first lines are broken, so that their content shows none."""
_MARKUP = re.compile(r"\s*(?:<\?xml|<!DOCTYPE|\{\s*[\"}]|\[\s*[\{\[\"])", re.IGNORECASE)
_XML = "xml"
_XML_HEAD = re.compile(r"\s*<\?xml", re.IGNORECASE)
_TABLE_SUFFIXES = (".csv", ".tsv")
_STRUCTURED_SUFFIXES = (".json", ".xml", ".ann", *_TABLE_SUFFIXES)


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file, or a folder of brat, and how it is read."""

    path: Path
    form: str
    config: InputConfig
    name: str = ""
    """The name in the ids of documents without one; empty: the path."""

    @property
    def source(self) -> Path:
        """The path that readers take: of UTF-8."""
        if self.path.is_dir() or self.form == DOCX or binary_table(self.path):
            return self.path
        encoding = self.config.encoding
        if self.config.is_utf8 and self.form == HTML:
            encoding = _html_encoding(self.path)
        if codecs.lookup(encoding).name == UTF_8 or _states_encoding(self.path):
            return self.path
        return transcoded(self.path, encoding)


@dataclass
class Inputs:
    """The documents of files, folders, zip archives, and standard input (``-``).

    Iterate to read them. Rejected records are in the ``log``, skipped files in ``skipped``.
    """

    paths: Sequence[str | Path]
    """Files, folders, archives, or ``-`` for standard input."""
    config: InputConfig = field(default_factory=InputConfig)
    """Format, columns and encoding."""
    log: ReadLog = field(default_factory=lambda: ReadLog(Path("input")))
    skipped: list[InputError] = field(default_factory=list)
    """The errors of the files that were left out."""
    notes: list[str] = field(default_factory=list)
    """Remarks, such as that a file looks like another format than the one named."""
    n_read: float | None = None
    """Bytes that are read, if it is 0 at first; the documents of a file are counted for it."""

    def __iter__(self) -> Iterator[Document]:
        for file in self.files():
            with self._skipping():
                yield from self.read(file)

    def read(self, file: InputFile) -> Iterator[Document]:
        """Read the documents of one of the files."""
        if self.n_read is None:
            yield from read_input(file, self.log)
            return
        n = 0
        if file.form not in _WHOLE or file.config.lines:
            with contextlib.suppress(InputError):  # raised when it is read
                for _ in read_input(file):
                    n += 1
        size = n_bytes(file.path) / max(n, 1)
        for document in read_input(file, self.log):
            self.n_read += size
            yield document

    def files(self) -> Iterator[InputFile]:
        """Find the files, and recognise the format of each."""
        for given in self.paths:
            path = (
                VirtualFile.of_bytes("stdin", sys.stdin.buffer.read())
                if str(given) == STDIN
                else Path(given)
            )
            if not exists(path):
                raise InputError("does not exist", path=path, remedy="check the path")
            with self._skipping():
                for each in _walk(path):
                    with self._skipping():
                        config = self._config_of(each)
                        yield InputFile(each, self._form_of(each, config), config)

    @contextlib.contextmanager
    def _skipping(self) -> Iterator[None]:
        try:
            yield
        except InputError as error:
            if not self.config.skip_errors:
                raise
            self.skipped.append(error)

    def _config_of(self, path: Path) -> InputConfig:
        """Return how a file is read: a table in an encoding that is certain."""
        config = self.config
        is_text_table = config.column and config.is_utf8 and not is_zip(path)
        if not is_text_table or binary_table(path) or is_empty(path):
            return config
        encoding = text_encoding(path)
        if encoding == GB18030:
            self.notes.append(f"{path}: {READ_AS_GB18030}")
        return replace(config, encoding=encoding)

    def _form_of(self, path: Path, config: InputConfig) -> str:
        with _advising(path, config):
            form, note = recognise(path, config)
        if note:
            self.notes.append(f"{path}: {note}")
        return form


def _walk(path: Path) -> Iterator[Path]:
    """Yield the files of a path: below a folder sorted by name, of a zip its members."""
    if path.is_dir():
        yield from _walk_folder(path)
    elif is_zip(path) and not packed_kind(path):
        yield from zip_members(path)
    else:
        yield path


def _walk_folder(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder; texts with annotations of brat as the folder itself."""
    files = _visible_files(folder)
    if not files:
        raise InputError("is a folder without files", path=folder, remedy="check the path")
    of_brat = (".txt", ".ann", ".conf") if any(_suffix(path) == ".ann" for path in files) else ()
    if of_brat:
        yield folder
    for path in files:
        if _suffix(path) not in of_brat:
            yield path


def _visible_files(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(p.startswith(".") for p in path.relative_to(folder).parts)
    )


def n_bytes(path: Path) -> int:
    """Return the size of a file, or of the files of a folder that are read."""
    files = _visible_files(path) if path.is_dir() else [path]
    return sum(each.stat().st_size for each in files)


def _suffix(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def recognise(path: Path, config: InputConfig) -> tuple[str, str]:
    """Return the format of a file or brat folder, and a remark on it, if any.

    Raise an ``InputError`` for what is not what the configuration names, and for content that is
    neither text nor known.

    Args:
        path: The file or folder.
        config: How it is read; may name its format.
    """
    if path.is_dir():
        if not config.is_utf8:
            raise ConfigError(f"{path}: --encoding: brat is read as UTF-8; convert its files first")
        if config.column or config.format not in ("", "brat"):
            raise _mismatch(path, "brat", config)
        return "brat", ""
    if kind := binary_table(path) or packed_kind(path):
        refuse_packed(path, kind)
        return _decide_binary(path, kind, config), ""
    if is_empty(path):
        return TABLE if config.column else TEXT, ""
    if config.format == "brat":
        raise InputError("is a file, brat has folders", path=path, remedy="name the folder")
    raw = read_head(path)
    refuse_binary(path, raw, is_utf8=config.is_utf8)
    if config.is_utf8:
        refuse_utf16(raw, path)
    file = InputFile(path, "", config)
    head = raw if config.is_utf8 else read_head(file.source)
    return _decide(Probe(path, head), config)


def _decide_binary(path: Path, kind: str, config: InputConfig) -> str:
    """Decide how to read a Word document, or a table that is no text."""
    if kind != DOCX:
        if not config.column:
            raise _unnamed_column(path)
        return TABLE
    if config.column or config.format not in ("", DOCX):
        raise _mismatch(path, DOCX, config)
    return DOCX


def _unnamed_column(path: Path, otherwise: str = "") -> UnrecognisedError:
    return UnrecognisedError(
        "is a table",
        path=path,
        remedy=f"name the column that holds the texts (--column){otherwise}",
    )


def _decide(probe: Probe, config: InputConfig) -> tuple[str, str]:
    """Decide between the format that is named and the one that is recognised."""
    found = _recognised(probe)
    if config.column:
        if not found and _XML_HEAD.match(probe.text):
            found = _XML
        if found and found not in ("jsonl", *_TAGGED):
            raise _mismatch(probe.path, found, config)
        return TABLE, ""
    if config.format == TEXT:
        return TEXT, f"looks like {found}; read as plain text, as --format says" if found else ""
    if config.format:
        if found != config.format and not _may_be(config.format, found, probe):
            raise _mismatch(probe.path, found or "text", config)
        return config.format, ""
    return found or _by_suffix(probe), ""


def _may_be(named: str, found: str, probe: Probe) -> bool:
    """Whether a file may have the format that is named, where another, or none, is recognised."""
    if named in _WHOLE:
        return named == HTML and not found
    alike = any({found, named} <= group for group in _ALIKE)
    return not found or alike or DOCUMENT_FORMATS.load(named).recognise(probe)


def _by_suffix(probe: Probe) -> str:
    """Return the format of content that shows none; refuse a table, and markup of any kind."""
    suffix = _suffix(probe.path)
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    if suffix in _TABLE_SUFFIXES:
        raise _unnamed_column(probe.path, ", or read it as plain text (--format text)")
    if suffix in _STRUCTURED_SUFFIXES or _MARKUP.match(probe.text):
        raise UnrecognisedError(
            "no reader of documents knows this content",
            path=probe.path,
            text=probe.first_line,
            remedy="name its format (--format), the key of the texts of JSON lines (--column), or "
            "read it as plain text (--format text)",
        )
    return TEXT


def _recognised(probe: Probe) -> str:
    """Return the format of documents that a probe shows; empty for text and what is unknown."""
    if is_html(probe.text):
        return HTML
    for name, form in DOCUMENT_FORMATS.load_all():
        if form.recognise(probe) and (name not in _TAGGED or _is_tagged(probe)):
            return name
    return ""


def _is_tagged(probe: Probe) -> bool:
    """Whether lines end with tags, not by chance: types behind tags, or many lines alike."""
    last = [line.split()[-1] for line in probe.lines(1000)]
    if any(len(cell) > 2 and cell[1] in "-_" and is_tag(cell) for cell in last):
        return True
    return len(last) >= _MIN_TAGGED and all(map(is_tag, last))


def _mismatch(path: Path, found: str, config: InputConfig) -> InputError:
    if config.column and found in (HTML, _XML):
        return InputError(
            f"is no workbook but {found.upper()}",
            path=path,
            remedy="open it in Excel, WPS or LibreOffice, and save it as .xlsx",
        )
    if config.column:
        return InputError(
            f"is recognised as {found}, which has no columns",
            path=path,
            remedy="leave --column out",
        )
    return InputError(
        f"is recognised as {found}, not as {config.format}",
        path=path,
        remedy=f"leave --format out, or give --format {found}",
    )


def _html_encoding(path: Path) -> str:
    """Return the encoding that a page states, or UTF-8."""
    stated = html_charset(read_head(path))
    try:
        return codecs.lookup(stated).name if stated else UTF_8
    except LookupError:
        return UTF_8


def _states_encoding(path: Path) -> bool:
    """Whether a file is XML, which states its own encoding."""
    head = read_head(path)[:200]
    return head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"<?xml")


def read_input(file: InputFile, log: ReadLog | None = None) -> Iterator[Document]:
    """Read the documents of one file; records that are wrong are counted in the log.

    Args:
        file: File of a known format.
        log: Counts records read, and what is doubtful or rejected.
    """
    log = log or ReadLog(file.path)
    with _advising(file.path, file.config):
        if file.form in (TEXT, TABLE) and not binary_table(file.path) and is_empty(file.path):
            yield from () if file.config.lines or file.form == TABLE else [Document(_id(file), "")]
        elif file.form in _WHOLE:
            yield from _lines(file) if file.config.lines else [_whole(file)]
        elif file.form == TABLE:
            yield from _rows(file, log)
        else:
            form: DocumentFormat = DOCUMENT_FORMATS.load(file.form)
            yield from form.read(file.source, log)


@contextlib.contextmanager
def _advising(path: Path, config: InputConfig) -> Iterator[None]:
    """Name an encoding that can be read in the errors of one that cannot."""
    try:
        yield
    except EncodingError as error:
        works = working_encoding(path)
        remedy = (
            "convert it to UTF-8 first"
            if works == config.encoding or path.is_dir()
            else f"give --encoding {works}, if that is its encoding"
        )
        raise EncodingError(
            error.problem, path=error.path, line=error.line, text=error.text, remedy=remedy
        ) from error


def _id(file: InputFile) -> str:
    return file.name or str(file.path)


def _whole(file: InputFile) -> Document:
    """Read a file as one document."""
    return Document(_id(file), _text(file))


def _text(file: InputFile) -> str:
    if file.form == DOCX:
        return docx_text(file.path)
    text = read_text(file.source)
    _refuse_nul(text, file.path)
    return html_text(text) if file.form == HTML else text


def _refuse_nul(text: str, path: Path) -> None:
    if (position := text.find("\0")) >= 0:
        raise FormatError(
            "holds a NUL byte",
            path=path,
            line=1 + text.count("\n", 0, position),
            remedy="the file is damaged or not text",
        )


def _lines(file: InputFile) -> Iterator[Document]:
    """Read each line that is not empty as a document."""
    is_plain = file.form == TEXT
    lines = read_lines(file.source) if is_plain else enumerate(_text(file).split("\n"), 1)
    for number, line in lines:
        if line.strip():
            yield Document(f"{_id(file)}:{number}", line)


def _rows(file: InputFile, log: ReadLog) -> Iterator[Document]:
    """Read a column of a table, one document a row; rows without text are left out."""
    config = file.config
    names = [config.column, *([config.id_column] if config.id_column else [])]
    for line, cells in read_columns(file, names, log):
        text = cells[config.column]
        if not text.strip():
            log.filter("a row without text")
            continue
        identifier = cells[config.id_column] if config.id_column else ""
        yield Document(identifier or f"{_id(file)}:{line}", text)


def read_columns(file: InputFile, columns: Sequence[str], log: ReadLog) -> Iterator[Row]:
    """Read columns of a table, the first of which holds text: line and cells of each row.

    Args:
        file: A table.
        columns: Names of columns, or numbers such as ``#1``.
        log: Counts rows read, and rejected by reason.
    """
    with _advising(file.path, file.config):
        if binary_table(file.path) or not is_empty(file.path):
            yield from read_table(file.source, columns, log, sheet=file.config.sheet)


def read_texts(
    paths: Iterable[str | Path], config: InputConfig | None = None, log: ReadLog | None = None
) -> Iterator[str]:
    """Read the texts of corpora, a document a line of plain text; each file must have some.

    Args:
        paths: Files of texts.
        config: How they are read; default: a document a line.
        log: Counts what is doubtful or rejected.
    """
    config = config or InputConfig(lines=True)
    inputs = Inputs(list(paths), config, log or ReadLog(Path("input")))
    for file in inputs.files():
        empty = True
        for document in read_input(file, inputs.log):
            if document.text.strip():
                empty = False
                yield document.text
        if empty:
            raise InputError("holds no text", path=file.path, remedy="expected text to read")


def files_below(paths: Iterable[str | Path]) -> list[Path]:
    """Return the files of paths, those below folders sorted by name, to record what was read."""
    files: list[Path] = []
    for path in map(Path, paths):
        files += sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    return files
