"""Documents with mentions as JSON lines: ``id, text, mentions: [start, end, text, concepts]``.

The path ``starter`` names the sample that ships with biograft.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from biograft.documents import Document, Mention
from biograft.errors import FormatError
from biograft.evaluation.formats.documents import queries_of
from biograft.evaluation.queries import GoldConfig, LinkQuery
from biograft.sources.files import read_lines
from biograft.sources.log import ReadLog

STARTER = "starter"


def read(path: str, config: GoldConfig, log: ReadLog) -> Iterator[LinkQuery]:
    """Read queries in the order of the documents."""
    for document in read_documents(path, log):
        yield from queries_of(document)


def read_documents(path: str, log: ReadLog) -> Iterator[Document]:
    """Read the documents, or those of the sample that ships with biograft."""
    if path != STARTER:
        yield from _read_file(Path(path), log)
        return
    with as_file(files("biograft.starter") / "sample.jsonl") as shipped:
        yield from _read_file(shipped, log)


def _read_file(path: Path, log: ReadLog) -> Iterator[Document]:
    for number, line in read_lines(path):
        if not line.strip():
            continue
        log.read()
        try:
            document = _document(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FormatError(
                f"no document with mentions ({error!r})",
                path=path,
                line=number,
                text=line,
                remedy="expected an object with id, text and mentions (start, end, text, concepts)",
            ) from error
        for mention in document.mentions:
            if document.text[mention.start : mention.end] != mention.text:
                raise FormatError(
                    f"the text from {mention.start} to {mention.end} is not the mention",
                    path=path,
                    line=number,
                    text=mention.text,
                )
        yield document


def _document(value: dict[str, Any]) -> Document:
    mentions = tuple(
        Mention(
            int(m["start"]),
            int(m["end"]),
            str(m["text"]),
            tuple(map(str, m["concepts"])),
            str(m.get("type", "")),
        )
        for m in value["mentions"]
    )
    return Document(str(value["id"]), str(value["text"]), mentions, str(value.get("language", "")))
