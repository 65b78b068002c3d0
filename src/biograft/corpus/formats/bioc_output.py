"""A document as the nested objects that BioC XML and BioC JSON both write."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from biograft.corpus.formats.text_output import joined
from biograft.documents import Document, Mention, Relation

_TAKEN = {"", "type", "relation", "of"}


def to_bioc(document: Document) -> dict[str, Any]:
    """Give the nested objects of a document whose passages do not overlap."""
    passages: list[dict[str, Any]] = [
        {
            "offset": start,
            "infons": {} if kind is None else {"type": kind},
            "text": document.text[start:end],
            "annotations": [],
        }
        for start, end, kind in _sections(document)
    ]
    starts = [passage["offset"] for passage in passages]
    for mention in document.mentions:
        home = max(bisect_right(starts, mention.start) - 1, 0)
        passages[home]["annotations"].append(_annotation(mention, document))
    return {
        "id": document.id,
        "infons": {"language": document.language} if document.language else {},
        "passages": passages,
        "relations": [_relation(relation) for relation in document.relations],
    }


def order_by_section(document: Document) -> tuple[Document, int]:
    """Order mentions as the passages that hold them; nothing is lost."""
    starts = [start for start, _, _ in _sections(document)]
    ordered = sorted(document.mentions, key=lambda m: bisect_right(starts, m.start))
    return replace(document, mentions=tuple(ordered)), 0


def _sections(document: Document) -> Iterator[tuple[int, int, str | None]]:
    """Cover the text with its passages, and what lies between with sections of no kind.

    Blanks before a passage need none, since its offset tells of them.
    """
    end = 0
    for passage in document.passages:
        if document.text[end : passage.start].strip(" "):
            yield end, passage.start, None
        yield passage.start, passage.end, passage.kind
        end = passage.end
    if end < len(document.text):
        yield end, len(document.text), None


def _annotation(mention: Mention, document: Document) -> dict[str, Any]:
    infons = {
        "type": mention.type,
        "identifier": joined(mention.concepts, document, "concept"),
        "parts": joined(mention.parts, document, "part"),
    }
    return {
        "id": mention.id,
        "infons": {key: value for key, value in infons.items() if value},
        "text": mention.text,
        "locations": [{"offset": a, "length": b - a} for a, b in mention.spans],
    }


def _relation(relation: Relation) -> dict[str, Any]:
    """Write a relation of concepts as BC5CDR does, in infons, where the roles allow it."""
    infons = {"type": relation.type}
    roles = [role for role, _ in relation.arguments]
    nodes = [{"refid": ref, "role": role} for role, ref in relation.arguments]
    if relation.of == "concepts":
        if nodes and len(set(roles)) == len(roles) and not _TAKEN & set(roles):
            infons |= dict(relation.arguments)
            nodes = []
        else:
            infons["of"] = "concepts"
    return {"id": relation.id, "infons": infons, "nodes": nodes}
