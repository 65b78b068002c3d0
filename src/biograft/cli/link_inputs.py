"""What ``biograft link`` is given: texts, files, standard input; always as documents."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from biograft.errors import ConfigError, InputError

if TYPE_CHECKING:
    from biograft.documents import Document

FORMS = ("text", "pubtator")
_FILE_ENDS = (".txt", ".pubtator", ".gz", ".md", ".csv", ".tsv", ".json", ".jsonl")
"""An argument that ends so, without blanks in it, is meant as a file."""


def read_documents(inputs: Sequence[str], form: str, *, mentions: bool) -> Iterator[Document]:
    """Give the documents of all inputs; with ``mentions`` each line is one, and all of it is."""
    if form not in ("", *FORMS):
        raise ConfigError(f"--format: expected one of {', '.join(FORMS)}, found {form!r}")
    if mentions and form == "pubtator":
        raise ConfigError("--mentions: is for plain lines; PubTator files name their own mentions")
    for number, each in enumerate(inputs, 1):
        path = _file_of(each)
        if path is not None and not mentions and _is_pubtator(path, form):
            from biograft.corpus import read_pubtator

            yield from read_pubtator(path)
            continue
        name = "stdin" if each == "-" else str(path) if path else f"text {number}"
        text = _read(each, path)
        if mentions:
            yield from _lines(name, text)
        else:
            yield _document(name, text)


def _document(name: str, text: str) -> Document:
    from biograft.documents import Document

    return Document(name, text)


def _lines(name: str, text: str) -> Iterator[Document]:
    from biograft.documents import Document, Mention

    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield Document(f"{name}:{number}", line, (Mention(0, len(line), line),))


def _read(given: str, path: Path | None) -> str:
    from biograft.sources.files import decode, read_text

    if given == "-":
        return decode(sys.stdin.buffer.read(), Path("stdin"), 1, "utf-8")
    if path is None:
        return given
    return read_text(path) if path.is_dir() or path.stat().st_size else ""


def _is_pubtator(path: Path, form: str) -> bool:
    name = path.name.removesuffix(".gz")
    return form == "pubtator" or (not form and name.lower().endswith(".pubtator"))


def _file_of(given: str) -> Path | None:
    """Say which file an argument names; one that is clearly meant as a file must be there."""
    if given == "-" or not given.strip():
        return None
    path = Path(given)
    try:
        there = path.exists()
    except (OSError, ValueError):  # too long, or with signs that no name has: a text
        return None
    if not there and given.endswith(_FILE_ENDS) and not any(map(str.isspace, given)):
        raise InputError("does not exist", path=given, remedy="check the path")
    return path if there else None
