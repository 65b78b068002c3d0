"""Tables of OMOP's tools as mappings, in the slots of SSSOM, and back.

Usagi saves a row for each target of a source code; ``source_to_concept_map`` of the Common Data
Model has one, too. What SSSOM has no slot for is kept in ``other``, as JSON, so that a table that
is read can be written again as it was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from biograft.errors import ConfigError, nearest
from biograft.kb.names import one_line, whole_number
from biograft.mapping.rows import MANUAL, MappingRow
from biograft.mapping.sssom import NO_TERM_FOUND, subject_curie, subject_of

PREFIX = "OMOP:"
VALUE, PART = "value:", "match_string"
"""Prefix of a part of a term whose concept only completes others, and the slot of parts."""
USAGI, OMOP = "usagi", "omop"
"""Names of the tables."""
USAGI_COLUMNS = (
    *("sourceCode", "sourceName", "sourceFrequency", "sourceAutoAssignedConceptIds"),
    *("matchScore", "mappingStatus", "equivalence", "statusSetBy", "statusSetOn", "conceptId"),
    *("conceptName", "domainId", "mappingType", "comment", "createdBy", "createdOn"),
    "assignedReviewer",
)
"""Columns of the files that Usagi saves; further ones begin with ``ADD_INFO:``."""
_N_OF_SOURCE = 4
"""Columns before those of ``ADD_INFO:``."""
_NEEDED = {
    USAGI: ("sourceCode", "sourceName", "mappingStatus", "conceptId"),
    OMOP: ("source_code", "source_code_description", "target_concept_id"),
}
_OTHER = "semapv:UnspecifiedMatching"
_STATUSES = {
    "APPROVED": MANUAL,
    "UNCHECKED": "semapv:LexicalMatching",
    **dict.fromkeys(
        ("AUTO_MAPPED", "AUTO_MAPPED_TO_1", "FLAGGED", "INVALID_TARGET", "IGNORED"), _OTHER
    ),
}
"""Status of a mapping in Usagi, and the justification that says the same."""
_EQUIVALENCES = {
    "EQUIVALENT": "exact",
    "WIDER": "broad",
    "NARROWER": "narrow",
    "INEXACT": "related",
    "EQUAL": "exact",
    "UNMATCHED": "exact",
    "UNREVIEWED": "exact",
}
"""Equivalence in Usagi, and the relation of SKOS; the first of a relation is written."""
_UNMAPPED = "Unmapped"
"""Usagi's name of the concept 0."""


def table_of(header: Sequence[str]) -> str:
    """Return which table has these columns; empty if it is none of OMOP's tools.

    Args:
        header: Names of the columns.
    """
    return next((name for name, needed in _NEEDED.items() if set(needed) <= set(header)), "")


def slots_of(table: str, cells: Mapping[str, str]) -> dict[str, str]:
    """Return the slots of the mapping that a row of a table is.

    Args:
        table: Name of the table.
        cells: Cells of the row by column.

    Raises:
        ConfigError: A cell is invalid.
    """
    return _slots_of_usagi(cells) if table == USAGI else _slots_of_omop(cells)


def _slots_of_usagi(cells: Mapping[str, str]) -> dict[str, str]:
    status, equivalence = cells["mappingStatus"], cells.get("equivalence") or "UNREVIEWED"
    for column, value, known in (
        ("mappingStatus", status, _STATUSES),
        ("equivalence", equivalence, _EQUIVALENCES),
    ):
        if value not in known:
            raise ConfigError(f"{column}: {value!r} is unknown; {nearest(value, known)}")
    relation = _EQUIVALENCES[equivalence]
    if equivalence == "UNREVIEWED" and status != "APPROVED":
        relation = "related"
    time, name = _time(cells.get("statusSetOn", "")), cells.get("conceptName", "")
    completes = cells.get("mappingType", "").endswith("VALUE")
    return {
        **_mapped("conceptId", cells, relation, name),
        **_subject(cells["sourceName"], cells["sourceCode"]),
        "mapping_justification": _STATUSES[status],
        **({PART: f"{VALUE} {name}".strip()} if completes else {}),
        "author_label": cells.get("statusSetBy", ""),
        "mapping_date": time[:10],
        "decided_at": time,
        "similarity_score": cells.get("matchScore", ""),
        "comment": cells.get("comment", ""),
        "frequency": str(whole_number(cells.get("sourceFrequency", "")) or ""),
    }


def _slots_of_omop(cells: Mapping[str, str]) -> dict[str, str]:
    return {
        **_mapped("target_concept_id", cells, "exact"),
        **_subject(cells["source_code_description"], cells["source_code"]),
        "mapping_justification": _OTHER if cells.get("invalid_reason") else MANUAL,
    }


def _subject(name: str, code: str) -> dict[str, str]:
    name, code = one_line(name), one_line(code)
    return {"subject_id": subject_curie(name, code), "subject_label": name}


def _mapped(column: str, cells: Mapping[str, str], relation: str, name: str = "") -> dict[str, str]:
    """Return the slots of the object, which the number of a concept names; 0: there is none."""
    number = whole_number(cells[column])
    if number is None:
        raise ConfigError(
            f"{column}: expected the number of a concept of OMOP, found {cells[column]!r}"
        )
    return {
        "object_id": f"{PREFIX}{number}" if number else NO_TERM_FOUND,
        "object_label": name if number else "",
        "predicate_id": f"skos:{relation if number else 'exact'}Match",
    }


def _time(milliseconds: str) -> str:
    """Return a time that Usagi counts in milliseconds since 1970, in UTC; empty for none."""
    number = whole_number(milliseconds)
    try:
        time = datetime.fromtimestamp((number or 0) // 1000, UTC)
    except (OverflowError, ValueError, OSError) as error:
        raise ConfigError(f"statusSetOn: expected milliseconds, found {milliseconds!r}") from error
    part = f".{number % 1000:03}" if number and number % 1000 else ""
    return f"{time:%Y-%m-%dT%H:%M:%S}{part}Z" if number else ""


def _milliseconds(time: str) -> str:
    found = datetime.fromisoformat(time or "1970-01-01")
    return str(round(found.replace(tzinfo=found.tzinfo or UTC).timestamp() * 1000))


def kept_cells(row: MappingRow, table: str) -> dict[str, str]:
    """Return the cells of a table that a mapping keeps, since no slot of SSSOM has them.

    Args:
        row: The mapping.
        table: Name of the table.
    """
    try:
        cells = json.loads(row.slots.get("other", "{}")).get(table, {})
    except (ValueError, AttributeError, RecursionError):  # SSSOM takes any text
        return {}
    return {str(k): str(v) for k, v in cells.items()} if isinstance(cells, dict) else {}


def is_value(row: MappingRow) -> bool:
    """Return True if the object of a mapping only completes its others (*Maps to value*).

    Args:
        row: The mapping.
    """
    return row.slots.get(PART, "").startswith(VALUE)


def other_slot(row: MappingRow, table: str, cells: Mapping[str, str]) -> str:
    """Return what a mapping has to keep of the row that it was read from.

    Args:
        row: The mapping.
        table: Name of the table.
        cells: Cells of the row by column.
    """
    made = usagi_cells(row) if table == USAGI else {}
    differ = {name: cell for name, cell in cells.items() if made.get(name, "") != cell}
    if table == OMOP:
        held = ("source_code", "source_code_description", "target_concept_id")
        differ = {name: cell for name, cell in differ.items() if name not in held}
    return json.dumps({table: differ}, ensure_ascii=False) if differ else ""


def concept_number(row: MappingRow) -> str:
    """Return the number of the concept of OMOP that a mapping names; ``0`` for none.

    Args:
        row: The mapping.

    Raises:
        ConfigError: It names a concept of another vocabulary.
    """
    number = row.object_id.removeprefix(PREFIX)
    if row.object_id == NO_TERM_FOUND:
        return "0"
    if whole_number(number) is None or number == row.object_id:
        raise ConfigError(f"{row.object_id} is no concept of OMOP (ids as OMOP:316866)")
    return number


def usagi_cells(row: MappingRow) -> dict[str, str]:
    """Return a mapping as Usagi saves it.

    Args:
        row: A mapping to a concept of OMOP, or to none.

    Raises:
        ConfigError: It names a concept of another vocabulary, or is a rejection, which Usagi
            does not have.
    """
    if row.predicate_modifier:
        raise ConfigError(f"{row.object_id} is rejected, which Usagi cannot say")
    number, kept = concept_number(row), kept_cells(row, USAGI)
    relation = "related" if row.relation == "close" else row.relation
    equivalence = next(name for name, each in _EQUIVALENCES.items() if each == relation)
    if number == "0" or not row.is_decided:
        equivalence = "UNMATCHED" if row.is_decided else "UNREVIEWED"
    # what was decided since then stands
    if (kept.get("mappingStatus", "UNCHECKED") == "APPROVED") != row.is_decided:
        kept.pop("mappingStatus", None)
    if number != "0" and _EQUIVALENCES.get(kept.get("equivalence", ""), relation) != relation:
        del kept["equivalence"]
    people = (row.author_label or row.author_id, row.reviewer_label or row.reviewer_id)
    by = "|".join(filter(None, people))
    term, code = subject_of(row.subject_id)
    return {
        "sourceCode": code or term,
        "sourceName": row.subject_label,
        "sourceFrequency": str(row.frequency),
        "matchScore": row.slots.get("similarity_score") or str(row.confidence or "0.00"),
        "mappingStatus": "APPROVED" if row.is_decided else "UNCHECKED",
        "equivalence": equivalence,
        "statusSetBy": by,
        "statusSetOn": _milliseconds(row.decided_at or (row.mapping_date if by else "")),
        "conceptId": number,
        "conceptName": row.object_label if number != "0" else _UNMAPPED,
        "mappingType": "MAPS_TO_VALUE" if is_value(row) else "MAPS_TO",
        "comment": row.comment,
        "createdBy": by if row.is_decided else "<auto>",
        "createdOn": "0",
        **kept,
    }


def usagi_columns(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the columns of a file of Usagi, with those of ``ADD_INFO:`` where it has them.

    Args:
        rows: Cells of its rows by column.
    """
    more = dict.fromkeys(name for row in rows for name in row if name not in USAGI_COLUMNS)
    return [*USAGI_COLUMNS[:_N_OF_SOURCE], *more, *USAGI_COLUMNS[_N_OF_SOURCE:]]
