"""BioC XML: a collection of documents, read one at a time; no entities may be declared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from biograft.corpus.formats.bioc import HOLDS, STEPS, parse
from biograft.corpus.formats.bioc_output import order_by_section, to_bioc
from biograft.corpus.formats.features import DocumentFormat
from biograft.corpus.formats.json_fields import MalformedError
from biograft.corpus.formats.text_output import element, encoded, opening
from biograft.corpus.formats.xml_input import refuse_entities
from biograft.documents import Document
from biograft.runs import new_file
from biograft.sources.format import Probe
from biograft.sources.log import ReadLog
from biograft.sources.xml_records import read_xml_records, root_name

_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE collection SYSTEM "BioC.dtd">\n'
    "<collection><source>biograft</source><date></date><key></key>\n"
)
_LISTS = {
    "passage": "passages", "sentence": "sentences", "annotation": "annotations",
    "relation": "relations", "location": "locations", "node": "nodes",
}  # fmt: skip


def recognise(probe: Probe) -> bool:
    """XML whose root is a collection."""
    return root_name(probe.text) == "collection"


def read(path: Path, log: ReadLog) -> Iterator[Document]:
    """Read the documents of a collection."""
    log.opened(path)
    refuse_entities(path)
    for record in read_xml_records(path, ("collection",), ("document",)):
        log.read(fraction=record.fraction)
        identifier = record.element.findtext("id") or ""
        try:
            document = parse(_object(record.element), log, path, record.line)
        except MalformedError as error:
            log.reject(str(error), record.line, f"document {identifier}", path=path)
            continue
        yield document


def _object(node: Element) -> dict[str, Any]:
    """Give an element as the object that BioC JSON has for it."""
    value: dict[str, Any] = {
        key: _number(each) if key in ("offset", "length") else each
        for key, each in node.attrib.items()
    }
    for child in node:
        if child.tag == "infon":
            value.setdefault("infons", {})[child.get("key", "")] = child.text or ""
        elif child.tag in _LISTS:
            value.setdefault(_LISTS[child.tag], []).append(_object(child))
        else:
            text = child.text or ""
            value[child.tag] = _number(text) if child.tag == "offset" else text
    return value


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise MalformedError("an offset is no whole number") from error


def write(documents: Iterable[Document], path: Path, overwrite: bool = False) -> None:
    """Write a collection, a document a line."""
    with new_file(path, overwrite=overwrite) as file:
        file.write(_HEAD.encode())
        for document in documents:
            file.write(encoded(_document(to_bioc(document)) + "\n", document))
        file.write(b"</collection>\n")


def _document(value: dict[str, Any]) -> str:
    inside = [
        element("id", value["id"]),
        *_infons(value),
        *map(_passage, value["passages"]),
        *map(_relation, value["relations"]),
    ]
    return f"<document>{''.join(inside)}</document>"


def _passage(value: dict[str, Any]) -> str:
    inside = [
        *_infons(value),
        element("offset", str(value["offset"])),
        element("text", value["text"]),
        *map(_annotation, value["annotations"]),
    ]
    return f"<passage>{''.join(inside)}</passage>"


def _annotation(value: dict[str, Any]) -> str:
    locations = [_empty("location", location) for location in value["locations"]]
    inside = [*_infons(value), *locations, element("text", value["text"])]
    return f"<{opening('annotation', _id(value))}>{''.join(inside)}</annotation>"


def _relation(value: dict[str, Any]) -> str:
    inside = [*_infons(value), *(_empty("node", node) for node in value["nodes"])]
    return f"<{opening('relation', _id(value))}>{''.join(inside)}</relation>"


def _empty(tag: str, attributes: dict[str, Any]) -> str:
    return f"<{opening(tag, {key: str(value) for key, value in attributes.items()})}/>"


def _id(value: dict[str, Any]) -> dict[str, str]:
    return {"id": value["id"]} if value["id"] else {}


def _infons(value: dict[str, Any]) -> list[str]:
    return [element("infon", text, key=key) for key, text in value["infons"].items()]


FORMAT = DocumentFormat(
    recognise=recognise,
    read=read,
    write=write,
    holds=HOLDS,
    steps=(*STEPS, ("order", order_by_section)),
)
