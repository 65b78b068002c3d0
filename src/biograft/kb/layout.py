"""The store on disk: which tables it has, what their columns mean, and its manifest.

A knowledge base is a folder of Arrow IPC files (any Arrow tool opens them) and
``manifest.json``. Concepts, names, languages, relations and so on are numbers inside; the words
behind the small numbers stand in the manifest under ``vocabularies``.

==================  =================================================================
``concepts.arrow``  a row a concept: ``id`` and, for each table below that is grouped by
                    concept, ``<table>_end``: where the concept's rows end there (they begin
                    where those of the concept before end)
``names``           ``concept, text, language, kind, source``; the concept's own name first
``definitions``     ``concept, text, language, source``
``types``           ``concept, type``
``ids``             ``concept, id, kind``: all ids but the primary one
``relations``       ``head, relation, tail, source``, grouped by head
``incoming``        ``relation_row``: rows of ``relations``, grouped by tail
``names_index``     ``entry``: half of the hash of a normalised name, and its row; sorted
``ids_index``       ``entry``: the same for canonical ids; rows of ``concepts``, then of ``ids``
==================  =================================================================
"""

from __future__ import annotations

import pyarrow as pa

from biograft.manifests import Kind
from biograft.records import IdKind, NameKind

STORE = Kind(
    format="biograft-kb",
    version=1,
    called="knowledge base",
    remedy="build the store again",
    absent="build one with `biograft kb build`",
)

LARGE_TEXT = pa.large_string()

SCHEMAS: dict[str, pa.Schema] = {
    "names": pa.schema(
        [
            ("concept", pa.uint32()),
            ("text", LARGE_TEXT),
            ("language", pa.uint16()),
            ("kind", pa.uint8()),
            ("source", pa.uint16()),
        ]
    ),
    "definitions": pa.schema(
        [
            ("concept", pa.uint32()),
            ("text", LARGE_TEXT),
            ("language", pa.uint16()),
            ("source", pa.uint16()),
        ]
    ),
    "types": pa.schema([("concept", pa.uint32()), ("type", pa.uint32())]),
    "ids": pa.schema([("concept", pa.uint32()), ("id", LARGE_TEXT), ("kind", pa.uint8())]),
    "relations": pa.schema(
        [
            ("head", pa.uint32()),
            ("relation", pa.uint16()),
            ("tail", pa.uint32()),
            ("source", pa.uint16()),
        ]
    ),
    "incoming": pa.schema([("relation_row", pa.uint32())]),
    "names_index": pa.schema([("entry", pa.uint64())]),
    "ids_index": pa.schema([("entry", pa.uint64())]),
}

GROUPED = ("names", "definitions", "types", "ids", "relations", "incoming")
"""Tables whose rows stand together by concept, with their ends in ``concepts``."""

SCHEMAS["concepts"] = pa.schema(
    [("id", LARGE_TEXT), *((f"{table}_end", pa.uint32()) for table in GROUPED)]
)

NAME_KINDS = tuple(NameKind)
ID_KINDS = tuple(IdKind)
VOCABULARIES = ("languages", "sources", "types", "relations")


def file_name(table: str) -> str:
    """Name the file of a table."""
    return f"{table}.arrow"
