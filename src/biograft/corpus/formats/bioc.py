"""What BioC XML and BioC JSON have in common: a document as nested objects, read and written.

A document has passages (or sentences within them) with offsets, these have annotations with
locations, and relations name annotations. Infons are the names and values of everything else;
``type`` and the ids of concepts are kept, others are counted as filtered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from biograft.corpus.formats.features import EVERYTHING, Feature
from biograft.corpus.formats.fitting import blank_out, keep_flat_passages
from biograft.corpus.formats.json_fields import MalformedError, field, fields
from biograft.corpus.formats.placing import Placer
from biograft.corpus.formats.text_output import XML_UNWRITABLE, parted
from biograft.documents import Document, Mention, Passage, Relation
from biograft.sources.log import ReadLog

HOLDS = EVERYTHING
STEPS = (
    (str(Feature.PASSAGES), keep_flat_passages),
    ("control characters", blank_out(XML_UNWRITABLE)),
)
_CONCEPT_KEYS = {
    *("identifier", "mesh", "omim", "cui", "umls", "concept", "concept_id", "conceptid"),
    *("snomed", "ncbi gene", "ncbigene", "gene_id", "chebi", "do", "hp", "icd10"),
}
"""Infons, in small letters, whose value is the id of a concept."""


@dataclass(slots=True)
class _Section:
    """A passage, or a sentence of one that has no text itself."""

    offset: int
    text: str
    kind: str | None
    annotations: list[dict[str, Any]]
    shift: int = 0
    """How much later the section stands than its file says."""


def parse(value: Any, log: ReadLog, path: Path, line: int) -> Document:
    """Make a document of its nested objects; what is none is a ``MalformedError``."""
    text, passages = "", []
    found: list[tuple[dict[str, Any], int]] = []
    for section in _sections(value, log):
        if section.offset < len(text):
            begins = f"at {section.offset}, after {len(text)} characters"
            log.doubt("a passage begins within the one before it", line, begins, path=path)
            text += " "
            section.shift = len(text) - section.offset
        start = section.offset + section.shift
        text += " " * (start - len(text)) + section.text
        if section.kind is not None:
            passages.append(Passage(start, len(text), section.kind))
        found += [(each, section.shift) for each in section.annotations]
    found += [(each, 0) for each in fields(value, "annotations", dict)]
    placer = Placer(text, log, path)
    mentions = [_mention(each, shift, placer, log, line) for each, shift in found]
    infons = _infons(value)
    for key in infons.keys() - {"language"}:
        log.filter(f"infon {key}")
    return Document(
        _text(value, "id"), text, tuple(m for m in mentions if m is not None),
        infons.get("language", ""), tuple(_relation(r) for r in _relations(value)), tuple(passages),
    )  # fmt: skip


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
                field(passage, "offset", int), text, infons.get("type"),
                annotations + [a for s in sentences for a in fields(s, "annotations", dict)],
            )  # fmt: skip
            continue
        log.filter("infon type", int("type" in infons))
        for sentence in sentences:
            own = fields(sentence, "annotations", dict)
            offset = field(sentence, "offset", int)
            yield _Section(offset, _text(sentence, "text"), "sentence", own)


def _relations(value: Any) -> Iterator[dict[str, Any]]:
    """Give the relations of a document and those its passages and sentences hold."""
    yield from fields(value, "relations", dict)
    for passage in fields(value, "passages", dict):
        yield from fields(passage, "relations", dict)
        for sentence in fields(passage, "sentences", dict):
            yield from fields(sentence, "relations", dict)


def _mention(
    value: dict[str, Any], shift: int, placer: Placer, log: ReadLog, line: int
) -> Mention | None:
    spans = []
    for location in fields(value, "locations", dict):
        start = field(location, "offset", int) + shift
        spans.append((start, start + field(location, "length", int)))
    mention = placer.mention(tuple(spans), _text(value, "text") or None, line)
    if mention is None:
        return None
    infons = _infons(value)
    concepts: list[str] = []
    for key, each in infons.items():
        if key.lower() in _CONCEPT_KEYS:
            concepts += parted(each)
        elif key not in ("type", "parts"):
            log.filter(f"infon {key}")
    return replace(
        mention, concepts=tuple(concepts), type=infons.get("type", ""),
        parts=parted(infons.get("parts", "")), id=_text(value, "id"),
    )  # fmt: skip


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
    """Give a text; numbers are written out, and nothing is the empty text."""
    found = value.get(key)
    if found is None:
        return ""
    if not isinstance(found, str | int):
        raise MalformedError(f"{key} is no text")
    return str(found)
