"""CMeEE (nested Chinese entities) as a JSON list: reader and writer; ``end_idx`` is inclusive."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from biograft.artifacts import new_file
from biograft.kb.sources.format import Probe
from biograft.kb.sources.json_files import JsonStream
from biograft.kb.sources.log import ReadLog
from biograft.text.documents import Document, Mention
from biograft.text.formats.fields import (
    MalformedError,
    OffsetChecker,
    encode_text,
    field,
    fields,
    refuse_surrogate,
)
from biograft.text.formats.format import DocumentFormat, Feature


def recognise(probe: Probe) -> bool:
    """A JSON list of objects with a text and entities."""
    text = probe.text
    return bool(re.match(r"\s*\[\s*\{", text)) and '"entities"' in text and '"text"' in text


def read(path: Path, log: ReadLog) -> Iterator[Document]:
    """Read the texts of the list, numbered from 1 as ids."""
    log.opened(path)
    with JsonStream(path, log=log) as stream:
        for number, line in enumerate(stream.elements(), 1):
            log.read(fraction=stream.fraction)
            value = stream.value()
            try:
                refuse_surrogate(stream)
                document = _document(value, str(number), log, path, line)
            except MalformedError as error:
                log.reject(str(error), line, json.dumps(value, ensure_ascii=False), path=path)
                continue
            yield document
        stream.finish()


def _document(value: Any, identifier: str, log: ReadLog, path: Path, line: int) -> Document:
    checker = OffsetChecker(field(value, "text", str), log, path)
    mentions = []
    for each in fields(value, "entities", dict):
        span = field(each, "start_idx", int), field(each, "end_idx", int) + 1
        mention = checker.mention((span,), field(each, "entity", str), line)
        if mention is not None:
            mentions.append(replace(mention, type=field(each, "type", str, "")))
    return Document(identifier, checker.text, tuple(mentions))


def write(documents: Iterable[Document], path: Path, overwrite: bool = False) -> None:
    """Write the list, one text per line."""
    with new_file(path, overwrite=overwrite) as file:
        file.write(b"[")
        for index, document in enumerate(documents):
            value = {"text": document.text, "entities": [_entity(m) for m in document.mentions]}
            line = json.dumps(value, ensure_ascii=False)
            file.write(encode_text(f",\n{line}" if index else f"\n{line}", document))
        file.write(b"\n]\n")


def _entity(mention: Mention) -> dict[str, Any]:
    return {
        "start_idx": mention.start,
        "end_idx": mention.end - 1,
        "type": mention.type,
        "entity": mention.text,
    }


FORMAT = DocumentFormat(
    recognise=recognise, read=read, write=write, holds=frozenset({Feature.NESTING, Feature.TYPES})
)
