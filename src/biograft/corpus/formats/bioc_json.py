"""BioC JSON: a collection as one JSON document, whose documents are read one at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from biograft.corpus.formats.bioc import HOLDS, STEPS, parse
from biograft.corpus.formats.bioc_output import order_by_section, to_bioc
from biograft.corpus.formats.features import DocumentFormat
from biograft.corpus.formats.json_fields import MalformedError, refuse_empty
from biograft.corpus.formats.text_output import encoded
from biograft.documents import Document
from biograft.runs import new_file
from biograft.sources.format import Probe
from biograft.sources.json_stream import JsonStream
from biograft.sources.log import ReadLog

_DOCUMENTS = ("documents", "PubTator3")
"""The keys under which a collection has its documents."""
_HEAD = {"source": "biograft", "date": "", "key": "", "infons": {}}


def recognise(probe: Probe) -> bool:
    """An object with a list of documents that have passages."""
    text = probe.text
    begins = re.match(r"\s*\{", text) and any(f'"{key}"' in text for key in _DOCUMENTS)
    return bool(begins) and ('"passages"' in text or '"key"' in text)


def read(path: Path, log: ReadLog) -> Iterator[Document]:
    """Read the documents of a collection."""
    log.opened(path)
    found = False
    with JsonStream(path) as stream:
        for key in stream.members():
            if key not in _DOCUMENTS:
                stream.skip()
                continue
            found = True
            for line in stream.elements():
                log.read(fraction=stream.fraction)
                value = stream.value()
                try:
                    document = parse(_object(value), log, path, line)
                except MalformedError as error:
                    log.reject(str(error), line, json.dumps(value, ensure_ascii=False), path=path)
                    continue
                yield document
        stream.finish()
    if not found:
        raise refuse_empty(path)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise MalformedError("expected an object")
    return value


def write(documents: Iterable[Document], path: Path, overwrite: bool = False) -> None:
    """Write a collection, a document a line."""
    with new_file(path, overwrite=overwrite) as file:
        head = json.dumps(_HEAD)
        file.write(f'{head[:-1]}, "documents": ['.encode())
        for number, document in enumerate(documents):
            line = json.dumps(to_bioc(document), ensure_ascii=False)
            file.write(encoded(f",\n{line}" if number else f"\n{line}", document))
        file.write(b"\n]}\n")


FORMAT = DocumentFormat(
    recognise=recognise,
    read=read,
    write=write,
    holds=HOLDS,
    steps=(*STEPS, ("order", order_by_section)),
)
