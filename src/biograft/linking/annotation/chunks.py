"""Text files as chunks of lines, and the records of a chunk as documents."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from biograft.errors import EncodingError, InputError
from biograft.kb.names import language_code
from biograft.kb.sources.files import MAX_LINE_BYTES, is_empty, open_bytes, read_head
from biograft.kb.sources.log import ReadLog, RejectionExample, Rejections
from biograft.text.documents import Document, Mention
from biograft.text.inputs import InputFile, Inputs, read_input
from biograft.text.virtual_files import working_encoding

CHUNK_BYTES = 8 << 20
"""Text of one shard: large enough for columnar storage, small enough for a worker's memory."""
LINES, JSON_LINES = "text", "jsonl"
"""Formats whose lines are split into chunks; other documents become JSON lines first."""


@dataclass
class AnnotationReport:
    """Counts of one shard, or of several added up."""

    counts: Counter[str] = field(default_factory=Counter)
    """``records``, ``documents``, ``characters``, ``spans``, and statistics of spans."""
    cleaned: Counter[str] = field(default_factory=Counter)
    """Changes by cleaning step."""
    rejected: Rejections = field(default_factory=Rejections)
    """Documents that could not be read: counts by reason, and examples."""

    @property
    def n_rejected(self) -> int:
        """The number of invalid records."""
        return self.rejected.counts.total()

    def add(self, other: Mapping[str, Any]) -> None:
        """Add the report of another shard, as plain values; shards are added in order.

        Args:
            other: ``counts``, ``cleaned`` and ``rejected``; what is missing is empty.
        """
        self.counts.update(other.get("counts", {}))
        self.cleaned.update(other.get("cleaned", {}))
        for reason, entry in other["rejected"].items():
            self.rejected.add(reason, n=entry["n"])
            for each in entry["examples"]:
                example = RejectionExample(each["file"], each["line"], each["text"])
                self.rejected.add(reason, example, n=0)

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "counts": dict(sorted(self.counts.items())),
            "cleaned": dict(sorted(self.cleaned.items())),
            "rejected": self.rejected.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole lines of a file; ``index`` is that of their shard."""

    path: Path
    form: str
    """``LINES`` or ``JSON_LINES``."""
    first: int
    """The first line, from 1."""
    data: bytes
    rejected: dict[str, Any] = field(default_factory=dict)
    """Records that the reader of documents has rejected."""
    index: int = 0


def find_files(inputs: Inputs) -> list[InputFile]:
    """List the files of inputs with their formats.

    Args:
        inputs: files, folders, archives, and how they are read.

    Returns:
        the files; ids of documents begin with their names.

    Raises:
        InputError: if a file cannot be read.
        EncodingError: if most lines of a text are not UTF-8; single ones are rejected later.
    """
    files = []
    for each in inputs.files():
        files.append(replace(each, name=each.path.name))
        if each.form == LINES and not is_empty(each.source):
            lines = [line for line in read_head(each.source).split(b"\n") if line.strip()]
            if sum(map(_is_utf8, lines)) * 2 < len(lines):
                encoding = working_encoding(each.path)
                remedy = f"give --encoding {encoding}, if that is its encoding"
                raise EncodingError("is not UTF-8", path=each.path, remedy=remedy)
    return files


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return error.end == len(line)  # cut at the end of the head
    return True


def read_chunks(files: Iterable[InputFile], size: int = CHUNK_BYTES) -> Iterator[Chunk]:
    """Read files as chunks.

    Args:
        files: made by :func:`find_files`.
        size: bytes of a chunk, about.

    Yields:
        the chunks in order; of a file that breaks off what was read, and a rejection.

    Raises:
        InputError: if a file breaks off and ``skip_errors`` is not set.
    """
    index = 0
    for file in files:
        chunks = _line_chunks if file.form in (LINES, JSON_LINES) else _document_chunks
        try:
            for chunk in chunks(file, size):
                yield replace(chunk, index=index)
                index += 1
        except InputError as error:
            if not file.config.skip_errors:
                raise
            rejected = Rejections()
            example = RejectionExample(str(file.path), error.line or 0, error.text or "")
            rejected.add(f"the file breaks off: {error.problem}", example)
            yield Chunk(Path(str(file.path)), JSON_LINES, 1, b"", rejected.to_json(), index)
            index += 1


def _line_chunks(file: InputFile, size: int) -> Iterator[Chunk]:
    source = file.source
    if is_empty(source):
        return
    first = 1
    with open_bytes(source) as raw:
        stream: IO[bytes] = io.BufferedReader(raw) if isinstance(raw, io.RawIOBase) else raw
        while data := stream.read(size):
            if not data.endswith(b"\n"):
                data += _rest_of_line(stream)
            yield Chunk(Path(str(file.path)), file.form, first, data)
            first += data.count(b"\n")


def _document_chunks(file: InputFile, size: int) -> Iterator[Chunk]:
    """Read the documents of any other format, and yield their texts as JSON lines."""
    log, n_bytes, first = ReadLog(file.path), 0, 1
    lines: list[bytes] = []

    def chunk() -> Chunk:
        path, rejected = Path(str(file.path)), log.rejected.to_json()
        return Chunk(path, JSON_LINES, first, b"".join(lines), rejected)

    for document in read_input(file, log):
        value: dict[str, Any] = {
            "id": document.id,
            "text": document.text,
            "language": document.language,
        }
        if document.mentions:
            value["mentions"] = [
                {"start": m.start, "end": m.end, "concepts": m.concepts} for m in document.mentions
            ]
        lines.append(f"{json.dumps(value)}\n".encode())
        n_bytes += len(lines[-1])
        if n_bytes >= size:
            yield chunk()
            first += len(lines)
            lines, n_bytes, log.rejected = [], 0, Rejections()
    if lines or log.rejected.counts:
        yield chunk()


def _rest_of_line(stream: IO[bytes]) -> bytes:
    """Read the rest of a line; of one that is too long, only the beginning."""
    rest = stream.readline(MAX_LINE_BYTES + 1)
    more = rest
    while more and not more.endswith(b"\n"):
        more = stream.readline(MAX_LINE_BYTES)
        if more.endswith(b"\n"):
            rest += b"\n"
    return rest


def read_records(
    chunk: Chunk, report: AnnotationReport, *, mentions: bool = False
) -> Iterator[Document]:
    """Parse the lines of a chunk into documents.

    Args:
        chunk: the lines.
        report: counts records, and those that are invalid, which are left out.
        mentions: read the mentions of documents, too.

    Yields:
        the documents.
    """
    log = ReadLog(chunk.path)
    log.rejected = report.rejected
    lines = chunk.data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, chunk.first):
        data = line.removesuffix(b"\r")
        if number == 1:
            data = data.removeprefix(b"\xef\xbb\xbf")
        if not data.strip():
            continue
        report.counts["records"] += 1
        try:
            yield _parse_record(data, chunk, f"{chunk.path.name}:{number}", mentions=mentions)
        except _InvalidRecordError as error:
            log.reject(str(error), number, data[:400].decode("utf-8", errors="replace"))


class _InvalidRecordError(ValueError):
    """A record is invalid."""


def _parse_record(data: bytes, chunk: Chunk, name: str, *, mentions: bool) -> Document:
    """Parse plain text, or ``{"text": ..., "id": ..., "language": ...}``; only text is required.

    Raise an ``_InvalidRecordError`` if it is neither.
    """
    if len(data) > MAX_LINE_BYTES:
        raise _InvalidRecordError(f"a line of over {MAX_LINE_BYTES >> 20} MiB")
    if b"\0" in data:
        raise _InvalidRecordError("holds a NUL byte")
    try:
        line = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _InvalidRecordError("is not UTF-8") from error
    if chunk.form == LINES:
        return Document(name, line)
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _InvalidRecordError("is not JSON") from error
    if not isinstance(record, dict):
        raise _InvalidRecordError("is no JSON object")
    text, identifier, language = (record.get(key) for key in ("text", "id", "language"))
    if not isinstance(text, str):
        raise _InvalidRecordError("has no text")
    if not isinstance(identifier, str | int | None) or not isinstance(language, str | None):
        raise _InvalidRecordError("has an id or a language that is no text")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _InvalidRecordError("holds half a surrogate pair") from error
    try:
        given = tuple(
            Mention(int(m["start"]), int(m["end"]), "", tuple(map(str, m.get("concepts", ()))))
            for m in (record.get("mentions", ()) if mentions else ())
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _InvalidRecordError("has mentions without start and end") from error
    named = name if identifier is None else str(identifier)
    return Document(named, text, given, language_code(language) if language else "")
