"""CBLUE's documents: CMeIE (triples), CHIP-CDEE (events) and IMCS-V2 (dialogues); read only.

Triples and events are names without offsets: of all their occurrences in the text the nearest ones
are the mentions, and relations join them. What names something that is not in the text is counted
as filtered; :mod:`biograft.evaluation.cblue`, which scores the files themselves, counts it as gold.

The mention of an event's core has the type ``core_name``, with the tendency after a bar
(``core_name|否定``); its descriptions and body parts have the types of their keys.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from biograft.kb.sources.format import Probe
from biograft.kb.sources.json_files import JsonRow, JsonStream, first_object, read_objects
from biograft.kb.sources.log import ReadLog
from biograft.text.documents import Document, Mention, Relation
from biograft.text.formats.format import DocumentFormat, MalformedError, field, fields

VALUE = "@value"
CORE, ATTRIBUTES = "core_name", ("character", "anatomy_list")
BAR = "|"
"""Stands between parts of a type or label."""


class SchemaRelation(NamedTuple):
    """A relation of a schema: its name, and the types of its subject and object."""

    subject_type: str
    predicate: str
    object_type: str


class Triple(NamedTuple):
    """A relation between two names."""

    subject: str
    object: str
    relation: SchemaRelation


def read_triple(value: Any) -> Triple | None:
    """Return the triple of an element of ``spo_list``; None if a part is missing."""
    relation = read_relation(value)
    subject, other = (_text(value, key) for key in ("subject", "object"))
    return Triple(subject, other, relation) if relation and subject and other else None


def read_relation(value: Any) -> SchemaRelation | None:
    """Return the relation of a schema or a triple; None if a part is missing."""
    relation = SchemaRelation(*(_text(value, key) for key in SchemaRelation._fields))
    return relation if all(relation) else None


def _text(value: Any, key: str) -> str:
    """Return the text of a key, which may be within ``@value``; empty if there is none."""
    content = value.get(key) if isinstance(value, dict) else None
    if isinstance(content, dict):
        content = content.get(VALUE)
    return content if isinstance(content, str) else ""


def nearest_occurrences(
    text: str, subject: str, other: str, start: int | None = None
) -> tuple[int, int] | None:
    """Return where two names begin, the nearest of all occurrences; None if one does not occur.

    Occurrences that do not overlap are preferred, then the first.

    Args:
        text: A text.
        subject: First name.
        other: Second name.
        start: Where the first name begins, if that is known.
    """

    def distance(pair: tuple[int, int]) -> tuple[bool, int, int]:
        gap = max(pair[0] - pair[1] - len(other), pair[1] - pair[0] - len(subject))
        return gap < 0, gap, min(pair)

    subjects = _starts(text, subject) if start is None else [start]
    return min(itertools.product(subjects, _starts(text, other)), key=distance, default=None)


def _starts(text: str, name: str) -> list[int]:
    return [start for start in range(len(text)) if name and text.startswith(name, start)]


class _Draft:
    """A text with the mentions and relations that are collected by name."""

    def __init__(self, text: str, log: ReadLog) -> None:
        self.text, self.log = text, log
        self.ids: dict[Mention, str] = {}
        self.relations: list[Relation] = []

    def mention(self, start: int, name: str, kind: str) -> str:
        """Add a mention, if it is new, and return its id."""
        mention = Mention(start, start + len(name), name, type=kind)
        return self.ids.setdefault(mention, f"T{len(self.ids) + 1}")

    def relate(self, kind: str, subject: str, other: str) -> None:
        """Add a relation between two mentions."""
        self.relations.append(Relation(kind, (("subject", subject), ("object", other))))


def _add_triple(draft: _Draft, value: dict[str, Any]) -> None:
    triple = read_triple(value)
    found = triple and nearest_occurrences(draft.text, triple.subject, triple.object)
    if triple is None or found is None:
        draft.log.filter("triples that are incomplete or not in the text")
        return
    kinds = triple.relation
    subject = draft.mention(found[0], triple.subject, kinds.subject_type)
    draft.relate(
        kinds.predicate, subject, draft.mention(found[1], triple.object, kinds.object_type)
    )


def _add_event(draft: _Draft, event: dict[str, Any]) -> None:
    given = {key: value for key, value in event.items() if value is not None}
    core, tendency = (field(given, key, str, "") for key in (CORE, "tendency"))
    values = [(key, name) for key in ATTRIBUTES for name in fields(given, key, str)]
    nearest = (nearest_occurrences(draft.text, core, name) for _, name in values)
    start = next((found[0] for found in nearest if found), draft.text.find(core))
    if not core or start < 0:
        draft.log.filter("events whose core is not in the text")
        return
    subject = draft.mention(start, core, f"{CORE}{BAR}{tendency}" if tendency else CORE)
    for key, name in values:
        if found := nearest_occurrences(draft.text, core, name, start):
            draft.relate(key, subject, draft.mention(found[1], name, key))
        else:
            draft.log.filter("descriptions and body parts that are not in the text")


def _named(key: str, add: Callable[[_Draft, dict[str, Any]], None]) -> DocumentFormat:
    """Return the format of texts with a list of what is named in them.

    Args:
        key: Key of the list.
        add: Adds an element of it to a draft.
    """

    def read(path: Path, log: ReadLog) -> Iterator[Document]:
        for row in read_objects(path, log):
            try:
                draft = _Draft(field(row.value, "text", str), log)
                for value in fields(row.value, key, dict):
                    add(draft, value)
            except MalformedError as error:
                log.reject(str(error), row.line, row.text, path=path)
                continue
            mentions = tuple(replace(mention, id=name) for mention, name in draft.ids.items())
            relations = tuple(dict.fromkeys(draft.relations))
            yield Document(str(row.line), draft.text, mentions, relations=relations)

    return DocumentFormat(
        recognise=lambda probe: {"text", key} <= set(first_object(probe.text)), read=read
    )


class Turn(NamedTuple):
    """A turn of a dialogue and its speaker; ids are joined by a slash."""

    id: str
    speaker: str
    text: str
    value: dict[str, Any]


REPORT = "self-report"
"""Key of what patients write before the dialogue, and the id of that turn."""


def read_dialogues(path: Path, log: ReadLog, encoding: str = "utf-8") -> Iterator[JsonRow]:
    """Read an object whose keys are ids and whose values are objects, as IMCS-V2.

    Args:
        path: The file.
        log: Counts dialogues read, and rejected by reason.
        encoding: Its encoding.
    """
    log.opened(path)
    with JsonStream(path, encoding, log) as stream:
        for identifier in stream.members():
            log.read(fraction=stream.fraction)
            value = stream.value(valid_unicode=True)
            if isinstance(value, dict):
                yield JsonRow(stream.line, value, identifier)
            else:
                log.reject("not a JSON object", stream.line, identifier)
        stream.finish()


def turns_of(row: JsonRow, log: ReadLog) -> list[Turn]:
    """Return the turns of a dialogue, the report of the patient first; none if it is rejected.

    Args:
        row: The dialogue; its text is the id.
        log: Counts rejected dialogues.
    """
    report = row.value.get(REPORT, row.value.get("self_report", ""))
    turns = [Turn(f"{row.text}/{REPORT}", "患者", str(report), {})]
    try:
        for value in field(row.value, "dialogue", list):
            said = [field(value, key, str) for key in ("sentence_id", "speaker", "sentence")]
            turns.append(Turn(f"{row.text}/{said[0]}", said[1], said[2], value))
    except MalformedError as error:
        log.reject(str(error), row.line, row.text)
        return []
    return turns


def tag_spans(tags: Iterable[str]) -> list[tuple[int, int, str]]:
    """Return the entities of tags as the benchmark reads them: start, end (exclusive), type.

    An ``I`` without a ``B`` is no entity, and an ``I`` of another type is passed over.

    >>> tag_spans("B-Drug I-Drug O I-Drug".split())
    [(0, 2, 'Drug')]
    """
    spans: list[tuple[int, int, str]] = []
    inside = False
    for index, tag in enumerate(tags):
        prefix, _, kind = tag.partition("-")
        if prefix == "B":
            spans.append((index, index + 1, kind))
        elif inside and prefix == "I" and kind == spans[-1][2]:
            spans[-1] = (spans[-1][0], index + 1, kind)
        inside = prefix == "B" or (inside and prefix == "I")
    return spans


def _read_tagged(path: Path, log: ReadLog) -> Iterator[Document]:
    """Read the turns of IMCS-V2 as documents with entities."""
    for row in read_dialogues(path, log):
        for turn in turns_of(row, log)[1:]:
            tags = str(turn.value.get("BIO_label") or "").split()
            if tags and len(tags) != len(turn.text):
                log.filter("turns with more or fewer tags than characters")
                tags = []
            spans = tag_spans(tags)
            mentions = (Mention(a, b, turn.text[a:b], type=kind) for a, b, kind in spans)
            yield Document(turn.id, turn.text, tuple(mentions))


def is_dialogues(probe: Probe) -> bool:
    """Return True for an object of dialogues."""
    return probe.text.lstrip().startswith("{") and '"dialogue"' in probe.text


TRIPLES = _named("spo_list", _add_triple)
EVENTS = _named("event", _add_event)
TAGGED = DocumentFormat(recognise=is_dialogues, read=_read_tagged)
