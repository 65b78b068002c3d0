"""CMeIE (CHIP-RE; Chinese medical relations) as relation examples: JSON lines and their schema.

A line is a text with triples: ``{"text": ..., "spo_list": [{"predicate": ..., "subject": ...,
"subject_type": ..., "object": {"@value": ...}, "object_type": {"@value": ...}}]}``. Triples are
names without offsets: of all occurrences of both names the nearest two are the mentions. Every
triple is an example, so all pairs are related, as in the classification task of CHIP-RE.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from biograft.errors import FormatError
from biograft.kb.sources.json_files import read_objects
from biograft.kb.sources.log import ReadLog
from biograft.text.documents import Mention
from biograft.text.formats.cblue import (
    BAR,
    SchemaRelation,
    Triple,
    nearest_occurrences,
    read_relation,
    read_triple,
)
from biograft.text.tasks.registry import RelationExample, TaskConfig, TaskFormat, by_object

NO_NEGATIVES = "holds related pairs only: no example of an unrelated pair"


def read_schema(path: Path, encoding: str = "utf-8") -> frozenset[SchemaRelation]:
    """Read a schema: one relation per JSON line, as ``53_schemas.json`` has them.

    Args:
        path: File of the schema.
        encoding: Its encoding.
    """
    log = ReadLog(path)
    relations = {read_relation(row.value) for row in read_objects(path, log, encoding)}
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
            triple, found = read_triple(value), None
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
    label = BAR.join(relation) if whole else relation.predicate
    return RelationExample(text, first, second, label, document, f"{document}.{number}")


FORMAT = TaskFormat(
    "relation", read, by_object({"text", "spo_list"}.issubset), frozenset({"schema"})
)
