"""BioC XML and BioC JSON: reader and writer.

Both formats nest the same objects (collection, document, passage, annotation); each document goes
through these objects as BioC JSON has them.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from biograft.errors import FormatError
from biograft.kb.names import whole_number
from biograft.kb.sources.files import max_value
from biograft.kb.sources.format import Probe
from biograft.kb.sources.json_files import JsonStream, list_objects
from biograft.kb.sources.log import ReadLog
from biograft.kb.sources.xml_records import read_xml_records, refuse_entities, root_name
from biograft.text.documents import Document, Mention, Passage, Relation
from biograft.text.formats.format import (
    ALL_FEATURES,
    XML_UNWRITABLE,
    DocumentFormat,
    Feature,
    MalformedError,
    OffsetChecker,
    Writer,
    encoded,
    field,
    fields,
    file_writer,
    join_ids,
    keep_flat_passages,
    replace_characters,
    split_ids,
    xml_element,
    xml_tag,
)

_OWN_KEYS, _ATTRIBUTE = ("type", "parts"), "attribute "
"""Infons of a mention that are no attribute, and what stands before an attribute of such a name."""
_CONCEPT_KEYS = {
    *("identifier", "mesh", "omim", "cui", "umls", "concept", "concept_id", "conceptid"),
    *("snomed", "ncbi gene", "ncbigene", "gene_id", "chebi", "do", "hp", "icd10"),
}
"""Infons, in lower case, whose value is a concept id."""
_DOCUMENTS = ("documents", "PubTator3")
"""The keys under which a collection has its documents."""


@dataclass(slots=True)
class _Section:
    """A passage, or a sentence of a passage without a text of its own."""

    offset: int
    text: str
    kind: str | None
    annotations: list[dict[str, Any]]
    shift: int = 0
    """By how much the section starts later than its offset in the file."""


def parse(value: Any, log: ReadLog, path: Path, line: int) -> Document:
    """Convert BioC objects into a document; raise ``MalformedError`` if they are not BioC.

    Args:
        value: Document of BioC, as plain values.
        log: Counts what is doubtful or rejected.
        path: File, for the log.
        line: Line of the document in it.
    """
    text, passages = "", []
    annotations: list[tuple[dict[str, Any], int]] = []
    for section in _sections(value, log):
        if section.offset < len(text):
            begins = f"at {section.offset}, after {len(text)} characters"
            log.doubt("a passage begins within the one before it", line, begins, path=path)
            text += " "
            section.shift = len(text) - section.offset
        start = section.offset + section.shift
        if start > max_value():  # what lies between is filled with spaces
            raise MalformedError(f"a passage begins beyond {max_value() >> 20} MiB")
        text += " " * (start - len(text)) + section.text
        if section.kind is not None:
            passages.append(Passage(start, len(text), section.kind))
        annotations += [(each, section.shift) for each in section.annotations]
    annotations += [(each, 0) for each in fields(value, "annotations", dict)]
    checker = OffsetChecker(text, log, path)
    mentions = [_mention(each, shift, checker, log, line) for each, shift in annotations]
    infons = _infons(value)
    for key in infons.keys() - {"language"}:
        log.filter(f"infon {key}")
    return Document(
        _text(value, "id"),
        text,
        tuple(m for m in mentions if m is not None),
        infons.get("language", ""),
        tuple(_relation(r) for r in _relations(value)),
        tuple(passages),
    )


def _sections(value: Any, log: ReadLog) -> Iterator[_Section]:
    for passage in fields(value, "passages", dict):
        infons = _infons(passage)
        for key in infons.keys() - {"type"}:
            log.filter(f"infon {key}")
        annotations = fields(passage, "annotations", dict)
        sentences = fields(passage, "sentences", dict)
        text = _text(passage, "text")
        if text or not sentences:
            yield _Section(
                field(passage, "offset", int),
                text,
                infons.get("type"),
                annotations + [a for s in sentences for a in fields(s, "annotations", dict)],
            )
            continue
        log.filter("infon type", int("type" in infons))
        for sentence in sentences:
            own = fields(sentence, "annotations", dict)
            offset = field(sentence, "offset", int)
            yield _Section(offset, _text(sentence, "text"), "sentence", own)


def _relations(value: Any) -> Iterator[dict[str, Any]]:
    """Return the relations of a document, its passages and its sentences."""
    yield from fields(value, "relations", dict)
    for passage in fields(value, "passages", dict):
        yield from fields(passage, "relations", dict)
        for sentence in fields(passage, "sentences", dict):
            yield from fields(sentence, "relations", dict)


def _mention(
    value: dict[str, Any], shift: int, checker: OffsetChecker, log: ReadLog, line: int
) -> Mention | None:
    spans = []
    for location in fields(value, "locations", dict):
        start = field(location, "offset", int) + shift
        spans.append((start, start + field(location, "length", int)))
    mention = checker.mention(tuple(spans), _text(value, "text") or None, line)
    if mention is None:
        return None
    infons = _infons(value)
    concepts: list[str] = []
    attributes: list[tuple[str, str]] = []
    for key, each in infons.items():
        if key.lower() in _CONCEPT_KEYS:
            concepts += split_ids(each)
        elif key not in _OWN_KEYS:
            attributes.append((key.removeprefix(_ATTRIBUTE), each))
    return replace(
        mention,
        concepts=tuple(concepts),
        type=infons.get("type", ""),
        parts=split_ids(infons.get("parts", "")),
        id=_text(value, "id"),
        attributes=tuple(attributes),
    )


def _relation(value: dict[str, Any]) -> Relation:
    infons = _infons(value)
    kind = infons.pop("type", None)
    kind = infons.pop("relation", "") if kind is None else kind
    of = infons.pop("of", "")
    arguments = tuple((_text(n, "role"), _text(n, "refid")) for n in fields(value, "nodes", dict))
    if not arguments and infons:
        arguments, of = tuple(infons.items()), "concepts"
    return Relation(kind, arguments, _text(value, "id"), of or "mentions")


def _infons(value: Any) -> dict[str, str]:
    return {
        key: str(each)
        for key, each in field(value, "infons", dict, {}).items()
        if isinstance(each, str | int | float)
    }


def _text(value: Any, key: str) -> str:
    """Return a value as text; a missing one is empty."""
    text = value.get(key)
    if text is None:
        return ""
    if not isinstance(text, str | int):
        raise MalformedError(f"{key} is no text")
    return str(text)


_RESERVED_INFONS = {"", "type", "relation", "of"}


def to_bioc(document: Document) -> dict[str, Any]:
    """Convert a document, whose passages must not overlap, into BioC objects."""
    passages: list[dict[str, Any]] = [
        {
            "offset": start,
            "infons": {} if kind is None else {"type": kind},
            "text": document.text[start:end],
            "annotations": [],
        }
        for start, end, kind in _section_bounds(document)
    ]
    starts = [passage["offset"] for passage in passages]
    for mention in document.mentions:
        passage = passages[max(bisect_right(starts, mention.start) - 1, 0)]
        passage["annotations"].append(_annotation_object(mention, document))
    return {
        "id": document.id,
        "infons": {"language": document.language} if document.language else {},
        "passages": passages,
        "relations": [_relation_object(relation) for relation in document.relations],
    }


def _section_bounds(document: Document) -> Iterator[tuple[int, int, str | None]]:
    """Cover the text by its passages, and by sections without a kind between them.

    Spaces before a passage need no section, since the offset of the passage implies them.
    """
    end = 0
    for passage in document.passages:
        if document.text[end : passage.start].strip(" "):
            yield end, passage.start, None
        yield passage.start, passage.end, passage.kind
        end = passage.end
    if end < len(document.text):
        yield end, len(document.text), None


def _annotation_object(mention: Mention, document: Document) -> dict[str, Any]:
    infons = {
        "type": mention.type,
        "identifier": join_ids(mention.concepts, document, "concept"),
        "parts": join_ids(mention.parts, document, "part"),
    }
    attributes = {
        f"{_ATTRIBUTE}{key}" if key in _OWN_KEYS or key.lower() in _CONCEPT_KEYS else key: said
        for key, said in mention.attributes
    }
    return {
        "id": mention.id,
        "infons": {key: value for key, value in infons.items() if value} | attributes,
        "text": mention.text,
        "locations": [{"offset": a, "length": b - a} for a, b in mention.spans],
    }


def _relation_object(relation: Relation) -> dict[str, Any]:
    """Convert a relation; arguments of concepts become infons, as in BC5CDR, if possible."""
    infons = {"type": relation.type}
    roles = [role for role, _ in relation.arguments]
    nodes = [{"refid": ref, "role": role} for role, ref in relation.arguments]
    if relation.of == "concepts":
        if nodes and len(set(roles)) == len(roles) and not _RESERVED_INFONS & set(roles):
            infons |= dict(relation.arguments)
            nodes = []
        else:
            infons["of"] = "concepts"
    return {"id": relation.id, "infons": infons, "nodes": nodes}


def order_by_section(document: Document) -> tuple[Document, int]:
    """Sort mentions by the passage that holds them; nothing is lost."""
    starts = [start for start, _, _ in _section_bounds(document)]
    ordered = sorted(document.mentions, key=lambda m: bisect_right(starts, m.start))
    return replace(document, mentions=tuple(ordered)), 0


_JSON_HEAD = {"source": "biograft", "date": "", "key": "", "infons": {}}


def recognise_json(probe: Probe) -> bool:
    """A JSON object with a list of documents that have passages."""
    text = probe.text
    begins = re.match(r"\s*\{", text) and any(f'"{key}"' in text for key in _DOCUMENTS)
    return bool(begins) and ('"passages"' in text or '"key"' in text)


def read_json(path: Path, log: ReadLog) -> Iterator[Document]:
    """Read the documents of a BioC JSON collection.

    Args:
        path: The file, also gzipped.
        log: Counts documents read, and what is doubtful or rejected.
    """
    log.opened(path)
    has_documents = False
    with JsonStream(path, log=log) as stream:
        for key in stream.members():
            if key not in _DOCUMENTS:
                stream.skip()
                continue
            has_documents = True
            for row in list_objects(stream, log, path):
                try:
                    document = parse(row.value, log, path, row.line)
                except MalformedError as error:
                    log.reject(str(error), row.line, row.text, path=path)
                    continue
                yield document
        stream.finish()
    if not has_documents:
        raise FormatError("holds no list of documents", path=path, remedy="name the right format")


def _json(document: Document) -> str:
    return "\n" + json.dumps(to_bioc(document), ensure_ascii=False)


_JSON_MARKS = f'{json.dumps(_JSON_HEAD)[:-1]}, "documents": [', ",", "\n]}\n"


def json_chunks(documents: Iterable[Document]) -> Iterator[bytes]:
    """Yield the parts of a JSON collection."""
    return encoded(documents, _json, *_JSON_MARKS)


_XML_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE collection SYSTEM "BioC.dtd">\n'
    "<collection><source>biograft</source><date></date><key></key>\n"
)
_LISTS = {
    "passage": "passages",
    "sentence": "sentences",
    "annotation": "annotations",
    "relation": "relations",
    "location": "locations",
    "node": "nodes",
}
_ELEMENTS = {key: tag for tag, key in _LISTS.items()}
_ORDER = ("offset", "locations", "text", "passages", "annotations", "nodes", "relations")
"""The parts of an element behind its infons, as the document type definition orders them."""


def read_xml(path: Path, log: ReadLog) -> Iterator[Document]:
    """Read the documents of a BioC XML collection.

    Args:
        path: The file, also gzipped.
        log: Counts documents read, and what is doubtful or rejected.
    """
    log.opened(path)
    refuse_entities(path)
    for record in read_xml_records(path, ("collection",), ("document",)):
        log.read(fraction=record.fraction)
        identifier = record.element.findtext("id") or ""
        try:
            document = parse(_xml_object(record.element), log, path, record.line)
        except MalformedError as error:
            log.reject(str(error), record.line, f"document {identifier}", path=path)
            continue
        yield document


def _xml_object(node: Element) -> dict[str, Any]:
    """Convert an XML element into the object that BioC JSON has for it."""
    value: dict[str, Any] = {
        key: _number(each) if key in ("offset", "length") else each
        for key, each in node.attrib.items()
    }
    for child in node:
        if child.tag == "infon":
            value.setdefault("infons", {})[child.get("key", "")] = child.text or ""
        elif child.tag in _LISTS:
            value.setdefault(_LISTS[child.tag], []).append(_xml_object(child))
        else:
            text = child.text or ""
            value[child.tag] = _number(text) if child.tag == "offset" else text
    return value


def _number(text: str) -> int:
    number = whole_number(text)
    if number is None:
        raise MalformedError("an offset is no whole number")
    return number


def _xml_document(document: Document) -> str:
    return _xml("document", to_bioc(document)) + "\n"


def _xml(tag: str, value: dict[str, Any]) -> str:
    """Write an object of BioC JSON as the element that BioC XML has for it."""
    if tag in ("location", "node"):
        return f"<{xml_tag(tag, {key: str(each) for key, each in value.items()})}/>"
    inside = [xml_element("infon", text, key=key) for key, text in value["infons"].items()]
    attributes = {}
    if tag == "document":
        inside.insert(0, xml_element("id", value["id"]))
    elif value.get("id"):
        attributes["id"] = value["id"]
    for key in _ORDER:
        if key in _ELEMENTS:
            inside += [_xml(_ELEMENTS[key], each) for each in value.get(key, ())]
        elif key in value:
            inside.append(xml_element(key, str(value[key])))
    return f"<{xml_tag(tag, attributes)}>{''.join(inside)}</{tag}>"


def _format(
    recognise: Callable[[Probe], bool],
    read: Callable[[Path, ReadLog], Iterator[Document]],
    write: Writer,
) -> DocumentFormat:
    return DocumentFormat(
        recognise=recognise,
        read=read,
        write=write,
        holds=ALL_FEATURES,
        steps=(
            (str(Feature.PASSAGES), keep_flat_passages),
            ("control characters", replace_characters(XML_UNWRITABLE)),
            ("order", order_by_section),
        ),
    )


BIOC_JSON = _format(recognise_json, read_json, file_writer(_json, *_JSON_MARKS))
BIOC_XML = _format(
    lambda probe: root_name(probe.text) == "collection",
    read_xml,
    file_writer(_xml_document, _XML_HEAD, "", "</collection>\n"),
)
