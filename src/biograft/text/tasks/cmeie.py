"""CMeIE (CHIP-RE; Chinese medical relations) as relation examples: JSON lines and their schema.

A line is a text with triples: ``{"text": ..., "spo_list": [{"predicate": ..., "subject": ...,
"subject_type": ..., "object": {"@value": ...}, "object_type": {"@value": ...}}]}``. Triples are
names without offsets: of all occurrences of both names the nearest two are the mentions. Every
triple is an example, so all pairs are related, as in the classification task of CHIP-RE.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from biograft.errors import FormatError
from biograft.kb.sources.json_files import read_objects
from biograft.kb.sources.log import ReadLog
from biograft.text.documents import Mention
from biograft.text.tasks.registry import RelationExample, TaskConfig, TaskFormat, by_object

VALUE = "@value"
SEPARATOR = "|"
"""Separates the parts of a label of a schema: ``疾病|预防|药物``."""
NO_NEGATIVES = "holds related pairs only: no example of an unrelated pair"


class SchemaRelation(NamedTuple):
    """A relation of the schema: its name, and the types of its subject and object."""

    subject_type: str
    predicate: str
    object_type: str


class Triple(NamedTuple):
    """A relation between two names."""

    subject: str
    object: str
    relation: SchemaRelation


def read_schema(path: Path, encoding: str = "utf-8") -> frozenset[SchemaRelation]:
    """Read a schema: one relation per JSON line, as ``53_schemas.json`` has them.

    Args:
        path: File of the schema.
        encoding: Its encoding.
    """
    log = ReadLog(path)
    relations = {_relation(row.value) for row in read_objects(path, log, encoding)}
    if None in relations or log.rejected.counts or not relations:
        raise FormatError(
            "expected one relation per line: subject_type, predicate, object_type",
            path=path,
            remedy="name the schema file of the corpus",
        )
    return frozenset(relation for relation in relations if relation is not None)


def read(config: TaskConfig, log: ReadLog) -> Iterator[RelationExample]:
    """Read the triples of all texts, in the order of the file.

    A label is the predicate; with ``schema`` all three parts of the relation, which must be in it.
    """
    schema = read_schema(config.schema, config.encoding) if config.schema else None
    log.note(NO_NEGATIVES)
    for row in read_objects(config.path, log, config.encoding):
        text, triples = row.value.get("text"), row.value.get("spo_list")
        if not isinstance(text, str) or not isinstance(triples, list):
            log.reject("not of the form text, spo_list", row.line, row.text)
            continue
        for number, value in enumerate(triples):
            triple, found = _triple(value), None
            if triple is None:
                reason = "a triple without subject, predicate, object and their types"
            elif schema is not None and triple.relation not in schema:
                reason = "a relation that is not in the schema"
            else:
                found = nearest_occurrences(text, triple.subject, triple.object)
                reason = "a subject or object that is not in the text"
            if triple is None or found is None:
                log.reject(reason, row.line, str(value))
                continue
            yield _example(text, triple, found, str(row.line), number, whole=schema is not None)


def nearest_occurrences(text: str, subject: str, other: str) -> tuple[int, int] | None:
    """Return where two names begin, the nearest of all occurrences; None if one does not occur.

    Occurrences that do not overlap are preferred, then the first.

    Args:
        text: A text.
        subject: First name.
        other: Second name.
    """
    pairs = itertools.product(_starts(text, subject), _starts(text, other))

    def distance(pair: tuple[int, int]) -> tuple[bool, int, int]:
        gap = max(pair[0] - pair[1] - len(other), pair[1] - pair[0] - len(subject))
        return gap < 0, gap, min(pair)

    return min(pairs, key=distance, default=None)


def _starts(text: str, name: str) -> list[int]:
    return [start for start in range(len(text)) if name and text.startswith(name, start)]


def _triple(value: Any) -> Triple | None:
    relation = _relation(value)
    subject, other = (_text(value, key) for key in ("subject", "object"))
    return Triple(subject, other, relation) if relation and subject and other else None


def _relation(value: Any) -> SchemaRelation | None:
    relation = SchemaRelation(*(_text(value, key) for key in SchemaRelation._fields))
    return relation if all(relation) else None


def _text(value: Any, key: str) -> str:
    """Return the text of a key, which may be within ``@value``; empty if there is none."""
    content = value.get(key) if isinstance(value, dict) else None
    if isinstance(content, dict):
        content = content.get(VALUE)
    return content if isinstance(content, str) else ""


def _example(
    text: str, triple: Triple, found: tuple[int, int], document: str, number: int, *, whole: bool
) -> RelationExample:
    names, relation = (triple.subject, triple.object), triple.relation
    first, second = (
        Mention(start, start + len(name), name, type=kind)
        for start, name, kind in zip(
            found, names, (relation.subject_type, relation.object_type), strict=True
        )
    )
    label = SEPARATOR.join(relation) if whole else relation.predicate
    return RelationExample(text, first, second, label, document, f"{document}.{number}")


def _is_cmeie(value: Mapping[str, Any]) -> bool:
    return {"text", "spo_list"} <= set(value)


FORMAT = TaskFormat("relation", read, by_object(_is_cmeie), frozenset({"schema"}))
