"""OMOP: rows of the table ``note_nlp`` of the Common Data Model 5.4, as CSV."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import biograft
from biograft.errors import visible
from biograft.kb.names import whole_number
from biograft.linking.candidates import LinkedDocument, LinkedMention
from biograft.linking.outputs.findings import cut, delimited_rows
from biograft.linking.outputs.output import ConceptIds, Documents, Output, OutputRun, reported

COLUMNS = (
    "note_nlp_id",
    "note_id",
    "section_concept_id",
    "snippet",
    "offset",
    "lexical_variant",
    "note_nlp_concept_id",
    "note_nlp_source_concept_id",
    "nlp_system",
    "nlp_date",
    "nlp_datetime",
    "term_exists",
    "term_temporal",
    "term_modifiers",
)
VOCABULARY = "OMOP"
_MAX_INTEGER = (1 << 31) - 1
_MAX_NOTE_ID = 2_000_000_000
"""Documents whose id is no integer up to here are numbered from the next one."""
_MAX_TEXT = 250
_MAX_MODIFIERS = 2000
_MODIFIERS = ("negated", "uncertain", "hypothetical", "conditional", "historical")
_THERE = frozenset(("historical", "active", "resolved", "recurrent"))
"""Flags of what the patient has or had."""


def note_nlp_chunks(documents: Documents, run: OutputRun) -> Iterator[str]:
    """Yield the header, then the rows of each document.

    Args:
        documents: The linked documents.
        run: The settings, the ids of concepts, and the time.
    """
    yield delimited_rows([COLUMNS])
    for number, linked in enumerate(reported(documents, run), 1):
        given = whole_number(linked.document.id)
        note = given if given and given <= _MAX_NOTE_ID else _MAX_NOTE_ID + number
        before = run.state.get("rows", 0)
        run.state["rows"] = before + len(linked.mentions)
        yield delimited_rows(
            _row(mention, row, note, linked, run)
            for row, mention in enumerate(linked.mentions, before + 1)
        )


def _row(
    mention: LinkedMention, row: int, note: int, linked: LinkedDocument, run: OutputRun
) -> tuple[Any, ...]:
    document, text = linked.document.id, linked.document.text
    concept = 0  # also of a concept of another vocabulary
    if mention.concept is not None:
        concept = omop_number(mention.concept, run.ids) or 0
    snippet = exists = temporal = None
    if run.config.include_text:  # as much of the text around it as the column allows
        around = max(_MAX_TEXT - (mention.end - mention.start), 0) // 2
        window = text[max(mention.start - around, 0) : mention.end + around]
        snippet = cut(visible(window), _MAX_TEXT)
    if (said := mention.assertion) is not None:
        temporal = "past" if said.historical or said.resolved else "present"
        if said.time == "future":
            temporal = None
        # the patient has or had it: not if it is negated, uncertain or of others
        exists = "Y" if _THERE.issuperset(said.flags) else "N"
    return (
        row,
        note,
        0,
        snippet,
        str(mention.start),
        cut(visible(mention.text), _MAX_TEXT),
        concept,
        concept,
        f"biograft {biograft.__version__}",
        run.time.date().isoformat(),
        run.time.strftime("%Y-%m-%d %H:%M:%S"),
        exists,
        temporal,
        _modifiers(mention, "" if str(note) == document else document, run),
    )


def omop_number(identifier: str, ids: ConceptIds) -> int | None:
    """Return a concept id of OMOP's vocabularies, ``OMOP:316866``, as a number; else None.

    Args:
        identifier: Id of a concept.
        ids: Says which vocabulary an id is from.
    """
    if ids.vocabulary(identifier) != VOCABULARY:
        return None
    number = whole_number(identifier.rpartition(":")[2])
    return number if number and number <= _MAX_INTEGER else None


def _modifiers(mention: LinkedMention, document: str, run: OutputRun) -> str:
    """Return what the text says of a mention, and what the table has no column for."""
    values: dict[str, str | None] = {}
    if assertion := mention.assertion:
        said = {flag: "yes" if flag in assertion.flags else "no" for flag in _MODIFIERS}
        values = {"negated": None, "subject": assertion.experiencer, **said}
        values |= {"unlikely": "yes" if assertion.unlikely else None, "course": assertion.course}
        values |= {"planned": "yes" if assertion.plan else None, "section": mention.section}
    identifier, vocabulary = mention.concept, ""
    if identifier is not None and ":" not in identifier:
        vocabulary = run.ids.vocabulary(identifier)
    values["concept"] = f"{vocabulary}:{identifier}" if vocabulary else identifier
    values["name"] = mention.name
    values["measurement"] = "; ".join(each.text for each in mention.measurements)
    values["document"] = document
    pairs = (f"{key}={_value(value)}" for key, value in values.items() if value)
    return ",".join(pairs)[:_MAX_MODIFIERS]


def _value(text: str) -> str:
    """Return a value without the characters that separate modifiers."""
    return visible(text).replace(",", " ").replace("=", " ")


OUTPUT = Output(chunks=note_nlp_chunks, media_type="text/csv; charset=utf-8", resumable=True)
