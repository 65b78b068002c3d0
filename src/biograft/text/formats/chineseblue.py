"""ChineseBLUE named entities (cMedQANER, cEHRNER) in JSON lines: reader and writer.

    {"text": "嘴里起了个泡", "mention_data": [{"mention": "嘴", "type": "body", "offset": "0"}]}

Offsets are written as text. cMedQANER has the key ``type`` and may name a concept (``guid``);
cEHRNER has the key ``label``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from biograft.artifacts import new_file
from biograft.kb.names import whole_number
from biograft.kb.sources.format import Probe
from biograft.kb.sources.json_files import read_objects
from biograft.kb.sources.log import ReadLog
from biograft.text.documents import Document, Mention
from biograft.text.formats.fields import (
    MalformedError,
    OffsetChecker,
    encode_text,
    field,
    fields,
    first_object,
    join_ids,
    split_ids,
)
from biograft.text.formats.format import DocumentFormat, Feature


def _recognise(key: str, probe: Probe) -> bool:
    value = first_object(probe)
    mentions = value.get("mention_data")
    if not isinstance(mentions, list) or "text" not in value:
        return False
    return all(isinstance(mention, dict) and key in mention for mention in mentions)


def read(path: Path, log: ReadLog) -> Iterator[Document]:
    """Read one text per line, numbered from 1 as ids."""
    for identifier, row in enumerate(read_objects(path, log), 1):
        try:
            checker = OffsetChecker(field(row.value, "text", str), log, path)
            entries = fields(row.value, "mention_data", dict)
            mentions = [_mention(entry, checker, row.line) for entry in entries]
        except MalformedError as error:
            log.reject(str(error), row.line, row.text, path=path)
            continue
        for key in row.value.keys() - {"text", "mention_data"}:
            log.filter(key)
        valid = tuple(mention for mention in mentions if mention is not None)
        yield Document(str(identifier), checker.text, valid)


def _mention(value: dict[str, Any], checker: OffsetChecker, line: int) -> Mention | None:
    written = field(value, "mention", str)
    offset = value.get("offset")
    start = whole_number(str(offset)) if isinstance(offset, str | int) else None
    if start is None:
        raise MalformedError("offset is missing or no whole number")
    span = start, start + len(written)
    kind = field(value, "label" if "label" in value else "type", str, "")
    guid = value.get("guid")
    concepts = split_ids(guid) if isinstance(guid, str) and guid != "None" else ()
    mention = checker.mention((span,), written, line)
    return mention and replace(mention, type=kind, concepts=concepts)


def _write(key: str, documents: Iterable[Document], path: Path, overwrite: bool = False) -> None:
    with new_file(path, overwrite=overwrite) as file:
        for document in documents:
            data = [_data(mention, key, document) for mention in document.mentions]
            value = {"text": document.text, "mention_data": data}
            file.write(encode_text(json.dumps(value, ensure_ascii=False) + "\n", document))


def _data(mention: Mention, key: str, document: Document) -> dict[str, str]:
    data = {"mention": mention.text, key: mention.type, "offset": str(mention.start)}
    if mention.concepts:
        data["guid"] = join_ids(mention.concepts, document, "concept")
    return data


_HOLDS = frozenset({Feature.NESTING, Feature.TYPES})
CMEDQANER = DocumentFormat(
    recognise=partial(_recognise, "type"),
    read=read,
    write=partial(_write, "type"),
    holds=_HOLDS | {Feature.CONCEPTS},
)
CEHRNER = DocumentFormat(
    recognise=partial(_recognise, "label"), read=read, write=partial(_write, "label"), holds=_HOLDS
)
