"""The input of annotation, cut into chunks: each becomes one shard, whoever works on it.

Files are read once, in blocks of whole lines; a line becomes a document only where the chunk is
worked on, so that reading is quick and a broken line costs no more than itself. Cutting depends on
the files alone, so the same input always gives the same chunks.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from biograft.annotation.report import AnnotationReport
from biograft.documents import Document
from biograft.errors import ConfigError, InputError
from biograft.languages import language_code
from biograft.sources.files import MAX_LINE_BYTES, is_empty, open_bytes, refuse_utf16

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
