"""What annotating did: documents and spans, what was rejected and where, what was cleaned."""

from __future__ import annotations

import io
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from biograft.annotation.config import AnnotationConfig
from biograft.annotation.pipeline import Annotator
from biograft.corpus.cleaning import Cleaner
from biograft.corpus.shards import AnnotatedDocument, read_report, shard_path, write_shard
from biograft.documents import Document
from biograft.errors import ConfigError, InputError, StoreError, shorten
from biograft.languages import language_code
from biograft.sources.files import MAX_LINE_BYTES, is_empty, open_bytes, refuse_utf16
from biograft.sources.log import Example, Rejections


@dataclass
class AnnotationReport:
    """Counts of one part, or of all of them put together."""

    counts: Counter[str] = field(default_factory=Counter)
    """``records``, ``documents``, ``characters``, ``spans``, and what became of spans."""
    cleaned: Counter[str] = field(default_factory=Counter)
    """By step of cleaning."""
    rejected: Rejections = field(default_factory=Rejections)

    @property
    def n_rejected(self) -> int:
        """How many records were broken."""
        return self.rejected.counts.total()

    def reject(self, reason: str, path: str, line: int, text: str) -> None:
        """Count a broken record, with where it stands."""
        said = shorten(text).encode(errors="replace").decode()
        self.rejected.add(reason, Example(path, line, said))

    def add(self, other: Mapping[str, Any]) -> None:
        """Add the report of another part, as plain values; parts come in their order."""
        self.counts.update(other["counts"])
        self.cleaned.update(other["cleaned"])
        for reason, entry in other["rejected"].items():
            self.rejected.add(reason, n=entry["n"])
            for example in entry["examples"]:
                self.rejected.add(
                    reason, Example(example["file"], example["line"], example["text"]), n=0
                )

    def to_json(self) -> dict[str, Any]:
        """Give the report as plain values."""
        return {
            "counts": dict(sorted(self.counts.items())),
            "cleaned": dict(sorted(self.cleaned.items())),
            "rejected": self.rejected.to_json(),
        }


CHUNK_BYTES = 8 << 20
"""Text of one shard: large enough for columns to pay, small enough for every worker's memory."""
FORMS = ("text", "jsonl")


@dataclass(frozen=True, slots=True)
class TextFile:
    """One file of the input, and how to read it."""

    path: Path
    form: str
    shown: str
    """The path as it was given, for messages."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some whole lines of a file; ``number`` is that of their shard."""

    number: int
    file: TextFile
    first: int
    """Number of the first line, from 1."""
    data: bytes


def find_files(paths: Sequence[str | Path], form: str = "") -> list[TextFile]:
    """See what is given: files, and folders of files in the order of their names."""
    if form not in ("", *FORMS):
        raise ConfigError(f"--format: expected one of {', '.join(FORMS)}, found {form!r}")
    found: list[TextFile] = []
    for each in map(Path, paths):
        if each.is_dir():
            inside = sorted(path for path in each.iterdir() if path.is_file())
            inside = [path for path in inside if not path.name.startswith(".")]
            if not inside:
                raise InputError("is a folder without files", path=each, remedy="check the path")
        else:
            inside = [each]
        found += [TextFile(path.absolute(), form or _form_of(path), str(path)) for path in inside]
    for file in found:
        if not file.path.exists():
            raise InputError("does not exist", path=file.path, remedy="check the path")
        if not is_empty(file.path):
            with open_bytes(file.path) as opened:
                refuse_utf16(opened.read(2), file.path)
    return found


def _form_of(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    return "jsonl" if name.endswith((".jsonl", ".ndjson")) else "text"


def read_chunks(
    files: Sequence[TextFile], size: int = CHUNK_BYTES, number: int = 0
) -> Iterator[Chunk]:
    """Read all files as chunks of about ``size`` bytes, numbered from ``number``."""
    for file in files:
        if is_empty(file.path):
            continue
        first = 1
        with open_bytes(file.path) as raw:
            stream: IO[bytes] = io.BufferedReader(raw) if isinstance(raw, io.RawIOBase) else raw
            while data := stream.read(size):
                if not data.endswith(b"\n"):
                    data += _rest_of_line(stream)
                yield Chunk(number, file, first, data)
                first += data.count(b"\n")
                number += 1


def _rest_of_line(stream: IO[bytes]) -> bytes:
    """Read a line to its end; of one that has none in sight only so much that it shows."""
    rest = stream.readline(MAX_LINE_BYTES + 1)
    more = rest
    while more and not more.endswith(b"\n"):
        more = stream.readline(MAX_LINE_BYTES)
        if more.endswith(b"\n"):
            rest += b"\n"
    return rest


def read_records(chunk: Chunk, report: AnnotationReport) -> Iterator[Document]:
    """Make documents of the lines of a chunk; a broken one is rejected, the rest goes on."""
    path = chunk.file.shown
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
            yield _document(data, chunk.file, number)
        except _BrokenError as error:
            text = data[:400].decode("utf-8", errors="replace")
            report.reject(str(error), path, number, text)


class _BrokenError(ValueError):
    """A record cannot be used."""


def _document(data: bytes, file: TextFile, line: int) -> Document:
    if len(data) > MAX_LINE_BYTES:
        raise _BrokenError(f"a line of over {MAX_LINE_BYTES >> 20} MiB")
    if b"\0" in data:
        raise _BrokenError("holds a NUL byte")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _BrokenError("is not UTF-8") from error
    name = f"{file.path.name}:{line}"
    return Document(name, text) if file.form == "text" else _of_json(text, name)


def _of_json(text: str, name: str) -> Document:
    """Read ``{"text": ..., "id": ..., "language": ...}``; only the text must be there."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _BrokenError("is not JSON") from error
    if not isinstance(record, dict):
        raise _BrokenError("is no JSON object")
    found, identifier, language = (record.get(key) for key in ("text", "id", "language"))
    if not isinstance(found, str):
        raise _BrokenError("has no text")
    if not isinstance(identifier, str | int | None) or not isinstance(language, str | None):
        raise _BrokenError("has an id or a language that is no text")
    try:
        found.encode()
    except UnicodeEncodeError as error:
        raise _BrokenError("holds half a surrogate pair") from error
    named = name if identifier is None else str(identifier)
    return Document(named, found, language=language_code(language) if language else "")


_DOCUMENTS, _CHARACTERS = 512, 1 << 18
"""A batch is full with so many documents, or so much text."""


@dataclass(frozen=True, slots=True)
class Job:
    """All that a worker must know besides the text."""

    kb: Path
    out: Path
    config: AnnotationConfig

    def open(self) -> Annotator:
        """Open what annotates; it takes memory and, for large stores, time."""
        return Annotator.open(self.kb, self.config)


def annotate_chunk(annotator: Annotator, chunk: Chunk, out: Path) -> dict[str, Any]:
    """Annotate a chunk into its shard, and give the report that lies in it."""
    report = AnnotationReport()
    documents = read_records(chunk, report)
    if annotator.config.cleaning is not None:
        cleaner = Cleaner(annotator.config.cleaning)
        documents = _cleaned(documents, cleaner)
        report.cleaned = cleaner.report.counts
    annotated: list[AnnotatedDocument] = []
    for batch in _batches(documents):
        annotated += annotator.annotate(batch, report.counts)
    said = report.to_json()
    write_shard(shard_path(out, chunk.number), annotated, said)
    return said


def done_before(out: Path, number: int) -> dict[str, Any] | None:
    """Give the report of a shard that is there already and whole."""
    path = shard_path(out, number)
    if not path.exists():
        return None
    try:
        return read_report(path)
    except StoreError:
        path.unlink()  # damaged from outside, since we write whole files only: made again
        return None


def n_cores() -> int:
    """Say how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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
