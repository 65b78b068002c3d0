"""SSSOM reader: the exact mappings of a mapping set, as cross-references of both sides.

It makes no concepts: build the file together with the vocabulary of its subjects or its objects.
"""

from __future__ import annotations

from collections.abc import Iterator

from biograft.kb.records import IdKind, IdRecord
from biograft.kb.sources.format import Format, Item, SourceConfig
from biograft.kb.sources.log import ReadLog
from biograft.kb.sources.table import header_of, named_rows

_NEEDED = ("subject_id", "predicate_id", "object_id")
_EXACT = ("exactMatch", "equivalentClass", "sameAs", "hasDbXref")
"""Predicates, without their prefix, that make an object a cross-reference."""


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield the sides of every exact mapping as cross-references of each other.

    A side that is no concept does not count as wrong: sets cover more than one knowledge base.
    """
    sides: set[str] = set()
    log.leave_out(sides)
    remedy = "expected a mapping set in SSSOM"
    for line, row in named_rows(config, log, _NEEDED, remedy):
        subject, predicate, other = (row[name] for name in _NEEDED)
        if not (subject and other):
            log.reject("no subject or no object", line, "\t".join(row.values()))
        elif other == "sssom:NoTermFound" or row.get("predicate_modifier") == "Not":
            log.filter("negative mapping")
        elif predicate.replace("#", ":").rpartition(":")[2] in _EXACT:
            left, right = log.iris.id_of(subject), log.iris.id_of(other)
            sides |= {left, right}
            yield IdRecord(left, right, IdKind.XREF, line)
            yield IdRecord(right, left, IdKind.XREF, line)
        else:
            log.filter("mapping that is not exact")


FORMAT = Format(lambda probe: header_of(probe).issuperset(_NEEDED), read)
