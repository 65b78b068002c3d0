"""OMOP: rows of the table ``note_nlp`` of the Common Data Model 5.4, as CSV."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import biograft
from biograft.errors import visible
from biograft.kb.names import whole_number
from biograft.linking.candidates import LinkedMention
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


def note_nlp_chunks(documents: Documents, run: OutputRun) -> Iterator[str]:
    """Give the header, then the rows of each document."""
    yield delimited_rows([COLUMNS])
    n_rows = 0
    for number, linked in enumerate(reported(documents, run), 1):
        note = _note_id(linked.document.id, number)
        rows = []
        for mention in linked.mentions:
            n_rows += 1
            rows.append(_row(mention, n_rows, note, linked.document.id, linked.document.text, run))
        yield delimited_rows(rows)


def _note_id(identifier: str, number: int) -> int:
    """Return the id of a note: that of the document if it is one, else a number of its own."""
    given = whole_number(identifier)
    return given if given and given <= _MAX_NOTE_ID else _MAX_NOTE_ID + number


def _row(
    mention: LinkedMention, row: int, note: int, document: str, text: str, run: OutputRun
) -> tuple[Any, ...]:
    concept = _concept_id(mention.concept, run)
    snippet = _snippet(mention, text) if run.config.include_text else None
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
        _exists(mention),
        _temporal(mention),
        _modifiers(mention, "" if str(note) == document else document, run),
    )


def _concept_id(identifier: str | None, run: OutputRun) -> int:
    """Return a concept id of OMOP's vocabularies as a number; 0 for any other id, and for NIL."""
    return 0 if identifier is None else omop_number(identifier, run.ids) or 0


def omop_number(identifier: str, ids: ConceptIds) -> int | None:
    """Return a concept id of OMOP's vocabularies, ``OMOP:316866``, as a number; else None."""
    if ids.vocabulary(identifier) != VOCABULARY:
        return None
    number = whole_number(identifier.rpartition(":")[2])
    return number if number and number <= _MAX_INTEGER else None


def _snippet(mention: LinkedMention, text: str) -> str:
    """Return the text around a mention, as long as the column allows."""
    around = max(_MAX_TEXT - (mention.end - mention.start), 0) // 2
    window = text[max(mention.start - around, 0) : mention.end + around]
    return cut(visible(window), _MAX_TEXT)


def _exists(mention: LinkedMention) -> str | None:
    """Whether the patient has or had it: no finding that is negated, uncertain or of others."""
    if mention.assertion is None:
        return None
    excluded = (
        mention.negated
        or mention.uncertain
        or mention.hypothetical
        or mention.conditional
        or mention.family
        or mention.other_person
    )
    return "N" if excluded else "Y"


def _temporal(mention: LinkedMention) -> str | None:
    if mention.assertion is None:
        return None
    return "past" if mention.historical else "present"


def _modifiers(mention: LinkedMention, document: str, run: OutputRun) -> str:
    """Return what the text says of a mention, and what the table has no column for."""
    values: dict[str, str | None] = {}
    if mention.assertion is not None:
        subject = "family" if mention.family else "other" if mention.other_person else "patient"
        values = {
            "negated": _yes_or_no(mention.negated),
            "subject": subject,
            "uncertain": _yes_or_no(mention.uncertain),
            "hypothetical": _yes_or_no(mention.hypothetical),
            "conditional": _yes_or_no(mention.conditional),
            "historical": _yes_or_no(mention.historical),
            "section": mention.section,
        }
    values["concept"], values["name"] = _qualified(mention.concept, run), mention.name
    values["measurement"] = "; ".join(each.text for each in mention.measurements)
    values["document"] = document
    pairs = (f"{key}={_value(value)}" for key, value in values.items() if value)
    return ",".join(pairs)[:_MAX_MODIFIERS]


def _qualified(identifier: str | None, run: OutputRun) -> str | None:
    """Return an id with the vocabulary that it is of, where that is known."""
    vocabulary = run.ids.vocabulary(identifier) if identifier else ""
    return f"{vocabulary}:{identifier}" if vocabulary and ":" not in str(identifier) else identifier


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def _value(text: str) -> str:
    """Return a value without the characters that separate modifiers."""
    return visible(text).replace(",", " ").replace("=", " ")


OUTPUT = Output(chunks=note_nlp_chunks, media_type="text/csv; charset=utf-8")
