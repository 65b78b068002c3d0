"""biograft's own JSON lines of documents: reader and writer; holds every feature.

    {"id": "1", "text": "Skin tumour", "language": "en",
     "mentions": [{"start": 5, "end": 11, "text": "tumour", "concepts": ["D009369"],
                   "type": "Disease", "id": "T1"}],
     "relations": [{"type": "treats", "of": "mentions", "arguments": [["Arg1", "T1"]], "id": ""}],
     "passages": [{"start": 0, "end": 11, "kind": "title"}]}

Only ``text`` is required; a document without ``id`` is named by its file and line, and a number is
an id, too. Empty values are omitted; a mention needs only ``start`` and ``end``. A mention with
gaps has ``fragments``, such as ``[[0, 4], [12, 18]]``, a composite mention ``parts``, and any may
have ``attributes``, such as ``[["status", "absent"]]``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from biograft.kb.sources.files import HEAD_BYTES
from biograft.kb.sources.format import Probe
from biograft.kb.sources.json_files import read_objects
from biograft.kb.sources.log import ReadLog
from biograft.text.documents import Document, Mention, Passage, Relation
from biograft.text.formats.format import (
    ALL_FEATURES,
    DocumentFormat,
    MalformedError,
    OffsetChecker,
    field,
    fields,
    file_writer,
    first_object,
)

_KEYS = {"id", "text", "mentions", "language", "relations", "passages"}
_OF = ("mentions", "concepts")
_TEXT_KEY = re.compile(r'"text"\s*:\s*"')


def recognise(probe: Probe) -> bool:
    """JSON lines with a key ``text``."""
    first = probe.first_line
    is_cut = len(probe.head) >= HEAD_BYTES and "\n" not in probe.text.strip()
    if is_cut and first.lstrip().startswith("{"):  # a long document
        return _TEXT_KEY.search(first) is not None
    return isinstance(first_object(probe).get("text"), str)


def read(path: Path, log: ReadLog) -> Iterator[Document]:
    """Read one document per line."""
    for row in read_objects(path, log):
        try:
            document = from_json(row.value, log, path, row.line)
        except MalformedError as error:
            log.reject(str(error), row.line, row.text, path=path)
            continue
        for key in row.value.keys() - _KEYS:
            log.filter(key)
        yield document


def from_json(value: dict[str, Any], log: ReadLog, path: Path, line: int = 0) -> Document:
    """Make a document of the JSON object of a line.

    Args:
        value: The object.
        log: Counts mentions that are doubtful or rejected.
        path: File, for the log, and for the id of a document without one.
        line: Line of the file.
    """
    document = Document(_id(value, path, line), field(value, "text", str))
    checker = OffsetChecker(document.text, log, path)
    mentions = [_mention(each, checker, line) for each in fields(value, "mentions", dict)]
    return replace(
        document,
        mentions=tuple(mention for mention in mentions if mention is not None),
        language=field(value, "language", str, ""),
        relations=tuple(map(_relation, fields(value, "relations", dict))),
        passages=tuple(_passage(p, document) for p in fields(value, "passages", dict)),
    )


def _id(value: dict[str, Any], path: Path, line: int) -> str:
    identifier = value.get("id")
    if isinstance(identifier, int) and not isinstance(identifier, bool):
        return str(identifier)
    return f"{path.name}:{line}" if identifier is None else field(value, "id", str)


def _mention(value: dict[str, Any], checker: OffsetChecker, line: int) -> Mention | None:
    written = field(value, "text", str) if "text" in value else None
    fragments = tuple(_pair(each, int) for each in fields(value, "fragments", list))
    spans = fragments or ((field(value, "start", int), field(value, "end", int)),)
    mention = checker.mention(spans, written, line, json.dumps(value, ensure_ascii=False))
    return mention and replace(
        mention,
        concepts=tuple(fields(value, "concepts", str)),
        type=field(value, "type", str, ""),
        parts=tuple(fields(value, "parts", str)),
        id=field(value, "id", str, ""),
        attributes=tuple(_pair(each, str) for each in fields(value, "attributes", list)),
    )


def _relation(value: dict[str, Any]) -> Relation:
    arguments = tuple(_pair(each, str) for each in fields(value, "arguments", list))
    of = field(value, "of", str, "mentions")
    if of not in _OF:
        raise MalformedError(f"a relation is of {' or '.join(_OF)}")
    return Relation(field(value, "type", str), arguments, field(value, "id", str, ""), of)


def _passage(value: dict[str, Any], document: Document) -> Passage:
    start, end = field(value, "start", int), field(value, "end", int)
    if not 0 <= start <= end <= len(document.text):
        raise MalformedError("a passage does not fit the text")
    return Passage(start, end, field(value, "kind", str, ""))


def _pair(value: list[Any], kind: type[Any]) -> tuple[Any, Any]:
    if len(value) != 2 or not all(type(each) is kind for each in value):
        raise MalformedError("expected pairs in fragments, arguments and attributes")
    return value[0], value[1]


def to_json(document: Document) -> dict[str, Any]:
    """Return a document as the JSON object of its line."""
    value = _filled(asdict(document), ("id", "text"))
    if document.mentions:
        value["mentions"] = [_filled(m, ("start", "end", "text")) for m in value["mentions"]]
    return value


def _filled(value: dict[str, Any], needed: tuple[str, ...]) -> dict[str, Any]:
    return {key: each for key, each in value.items() if each or key in needed}


def _line(document: Document) -> str:
    return json.dumps(to_json(document), ensure_ascii=False) + "\n"


FORMAT = DocumentFormat(
    recognise=recognise, read=read, write=file_writer(_line), holds=ALL_FEATURES
)
