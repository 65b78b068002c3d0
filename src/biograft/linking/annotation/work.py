"""Units of annotation work: text files as chunks, records, jobs, and the report of a shard."""

from __future__ import annotations

import contextlib
import gc
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from biograft.errors import EncodingError, InputError, StoreError, shorten
from biograft.kb.names import language_code
from biograft.kb.sources.files import MAX_LINE_BYTES, is_empty, open_bytes, read_head
from biograft.kb.sources.log import ReadLog, RejectionExample, Rejections
from biograft.linking.annotation.config import AnnotationConfig
from biograft.linking.annotation.given import with_given
from biograft.linking.annotation.pipeline import Annotator
from biograft.text.cleaning import Cleaner
from biograft.text.documents import Document, Mention
from biograft.text.input_config import InputConfig
from biograft.text.inputs import InputFile, Inputs, read_input
from biograft.text.shards import AnnotatedDocument, read_report, shard_path, write_shard
from biograft.text.virtual_files import working_encoding


@dataclass
class AnnotationReport:
    """Counts of one shard, or of several added up."""

    counts: Counter[str] = field(default_factory=Counter)
    """``records``, ``documents``, ``characters``, ``spans``, and statistics of spans."""
    cleaned: Counter[str] = field(default_factory=Counter)
    """Changes by cleaning step."""
    rejected: Rejections = field(default_factory=Rejections)

    @property
    def n_rejected(self) -> int:
        """The number of invalid records."""
        return self.rejected.counts.total()

    def reject(self, reason: str, path: str, line: int, text: str) -> None:
        """Count an invalid record, with its file and line."""
        excerpt = shorten(text).encode(errors="replace").decode()
        self.rejected.add(reason, RejectionExample(path, line, excerpt))

    def add(self, other: Mapping[str, Any]) -> None:
        """Add the report of another shard, as plain values; shards are added in order."""
        self.counts.update(other["counts"])
        self.cleaned.update(other["cleaned"])
        for reason, entry in other["rejected"].items():
            self.rejected.add(reason, n=entry["n"])
            for example in entry["examples"]:
                self.rejected.add(
                    reason, RejectionExample(example["file"], example["line"], example["text"]), n=0
                )

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "counts": dict(sorted(self.counts.items())),
            "cleaned": dict(sorted(self.cleaned.items())),
            "rejected": self.rejected.to_json(),
        }


CHUNK_BYTES = 8 << 20
"""Text of one shard: large enough for columnar storage, small enough for a worker's memory."""
LINES, JSON_LINES = "text", "jsonl"
"""Formats whose lines are split into chunks; other documents become JSON lines first."""


@dataclass(frozen=True, slots=True)
class TextFile:
    """An input file, its format, and how it is read."""

    path: Path
    form: str
    display_path: str
    """The path as given, for messages."""
    reading: InputConfig = field(default_factory=lambda: InputConfig(lines=True))

    @property
    def input(self) -> InputFile:
        """The file as one of documents."""
        return InputFile(self.path, self.form, self.reading, self.path.name)

    @property
    def n_bytes(self) -> int:
        """Its size, or that of all files of a folder."""
        if self.path.is_dir():
            return sum(each.stat().st_size for each in self.path.rglob("*") if each.is_file())
        return self.path.stat().st_size


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole lines of a file; ``index`` is that of their shard."""

    index: int
    file: TextFile
    first: int
    """The first line, from 1."""
    data: bytes
    rejected: str = "{}"
    """Records that the reader of documents has rejected, as JSON."""


def find_files(inputs: Inputs) -> list[TextFile]:
    """List the files of inputs with their formats."""
    files = []
    for each in inputs.files():
        path = each.path if each.is_local else each.path.absolute()
        files.append(TextFile(path, each.form, str(each.path), each.config))
        if each.form == LINES and not is_empty(each.source):
            _refuse_other_encoding(each)
    return files


def _refuse_other_encoding(file: InputFile) -> None:
    """Refuse a file of which most lines are not UTF-8; single ones are rejected later."""
    lines = [line for line in read_head(file.source).split(b"\n") if line.strip()]
    if sum(map(_is_utf8, lines)) * 2 < len(lines):
        raise EncodingError(
            "is not UTF-8", path=file.path,
            remedy=f"give --encoding {working_encoding(file.path)}, if that is its encoding",
        )  # fmt: skip


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return error.end == len(line)  # cut at the end of the head
    return True


def read_chunks(
    files: Sequence[TextFile], size: int = CHUNK_BYTES, index: int = 0
) -> Iterator[Chunk]:
    """Read all files as chunks of about ``size`` bytes, with indices from ``index``."""
    for file in files:
        chunks = _line_chunks if file.form in (LINES, JSON_LINES) else _document_chunks
        for chunk in _unless_broken(chunks(file, size), file):
            yield replace(chunk, index=index)
            index += 1


def _unless_broken(chunks: Iterator[Chunk], file: TextFile) -> Iterator[Chunk]:
    """Yield the chunks of a file; of one that breaks off, what was read, and a rejection."""
    try:
        yield from chunks
    except InputError as error:
        if not file.reading.skip_errors:
            raise
        rejected = Rejections()
        example = RejectionExample(file.display_path, error.line or 0, error.text or "")
        rejected.add(f"the file breaks off: {error.problem}", example)
        plain = replace(file, path=Path(str(file.path)), form=JSON_LINES)
        yield Chunk(0, plain, 1, b"", json.dumps(rejected.to_json()))


def _line_chunks(file: TextFile, size: int) -> Iterator[Chunk]:
    source = file.input.source
    if is_empty(source):
        return
    file = replace(file, path=Path(str(file.path)))
    first = 1
    with open_bytes(source) as raw:
        stream: IO[bytes] = io.BufferedReader(raw) if isinstance(raw, io.RawIOBase) else raw
        while data := stream.read(size):
            if not data.endswith(b"\n"):
                data += _rest_of_line(stream)
            yield Chunk(0, file, first, data)
            first += data.count(b"\n")


def _document_chunks(file: TextFile, size: int) -> Iterator[Chunk]:
    """Read the documents of any other format, and yield their texts as JSON lines."""
    as_json = replace(file, path=Path(str(file.path)), form=JSON_LINES)
    log, n_bytes, first = ReadLog(Path(file.display_path)), 0, 1
    lines: list[bytes] = []

    def chunk() -> Chunk:
        return Chunk(0, as_json, first, b"".join(lines), json.dumps(log.rejected.to_json()))

    for document in read_input(file.input, log):
        mentions = [
            {"start": m.start, "end": m.end, "concepts": m.concepts} for m in document.mentions
        ]
        value: dict[str, Any] = {
            "id": document.id,
            "text": document.text,
            "language": document.language,
        }
        value |= {"mentions": mentions} if mentions else {}
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
    """Parse the lines of a chunk into documents; invalid ones are rejected.

    Only with ``mentions`` those of the documents are read.
    """
    path = chunk.file.display_path
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
            yield _document(data, chunk.file, number, mentions=mentions)
        except _InvalidRecordError as error:
            text = data[:400].decode("utf-8", errors="replace")
            report.reject(str(error), path, number, text)


class _InvalidRecordError(ValueError):
    """A record is invalid."""


def _document(data: bytes, file: TextFile, line: int, *, mentions: bool) -> Document:
    if len(data) > MAX_LINE_BYTES:
        raise _InvalidRecordError(f"a line of over {MAX_LINE_BYTES >> 20} MiB")
    if b"\0" in data:
        raise _InvalidRecordError("holds a NUL byte")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _InvalidRecordError("is not UTF-8") from error
    name = f"{file.path.name}:{line}"
    if file.form == LINES:
        return Document(name, text)
    return _parse_json(text, name, mentions=mentions)


def _parse_json(line: str, name: str, *, mentions: bool) -> Document:
    """Parse ``{"text": ..., "id": ..., "language": ...}``; only the text is required."""
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
    named = name if identifier is None else str(identifier)
    given = _mentions(record.get("mentions", [])) if mentions else ()
    return Document(named, text, given, language_code(language) if language else "")


def _mentions(values: Any) -> tuple[Mention, ...]:
    try:
        return tuple(
            Mention(int(m["start"]), int(m["end"]), "", tuple(map(str, m.get("concepts", ()))))
            for m in values
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _InvalidRecordError("has mentions without start and end") from error


_DOCUMENTS, _CHARACTERS = 512, 1 << 18
"""Maximum documents and characters of a batch."""


@dataclass(frozen=True, slots=True)
class Job:
    """Shared input of all workers, besides the text."""

    kb: Path
    out: Path
    config: AnnotationConfig

    def open(self) -> Annotator:
        """Open the annotator, which takes memory and, for large stores, time."""
        return Annotator.open(self.kb, self.config)


@contextlib.contextmanager
def _without_cycle_collection() -> Iterator[None]:
    """Have Python look for no cycles: it would go through all spans of a chunk many times."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@_without_cycle_collection()
def annotate_chunk(annotator: Annotator, chunk: Chunk, out: Path) -> dict[str, Any]:
    """Annotate a chunk into its shard, and return its report."""
    report = AnnotationReport()
    report.add({"counts": {}, "cleaned": {}, "rejected": json.loads(chunk.rejected)})
    how = annotator.config.mentions
    documents = read_records(chunk, report, mentions=how != "find")
    if annotator.config.cleaning is not None:
        cleaner = Cleaner(annotator.config.cleaning)
        documents = _cleaned(documents, cleaner)
        report.cleaned = cleaner.report.counts
    annotated: list[AnnotatedDocument] = []
    for batch in _batches(documents):
        found = annotator.annotate(batch, report.counts)
        if how == "find":
            annotated += found
        else:
            annotated += with_given(found, batch, annotator.kb, how, report.counts)
    values = report.to_json()
    write_shard(shard_path(out, chunk.index), annotated, values)
    return values


def read_finished(out: Path, index: int) -> dict[str, Any] | None:
    """Return the report of a complete shard; None if there is none."""
    path = shard_path(out, index)
    if not path.exists():
        return None
    try:
        return read_report(path)
    except StoreError:
        path.unlink()  # damaged from outside, since only complete files are written: made again
        return None


def _cleaned(documents: Iterable[Document], cleaner: Cleaner) -> Iterator[Document]:
    for document in documents:
        yield from cleaner.clean(document)


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    batch: list[Document] = []
    n_characters = 0
    for document in documents:
        batch.append(document)
        n_characters += len(document.text)
        if len(batch) >= _DOCUMENTS or n_characters >= _CHARACTERS:
            yield batch
            batch, n_characters = [], 0
    if batch:
        yield batch
