"""Findings as rows: one row a mention that was linked, for tables and data frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from biograft.clinical import FLAGS
from biograft.linking.candidates import Candidate, LinkedDocument, LinkedMention
from biograft.linking.outputs.output import OutputRun
from biograft.linking.outputs.report import report_document

DECIMALS = 6
COLUMNS: dict[str, type] = {
    "document": str,
    "start": int,
    "end": int,
    "text": str,
    "form": str,
    "concept": str,
    "name": str,
    "types": list,
    "score": float,
    "probability": float,
    "status": str,
    **dict.fromkeys(FLAGS, bool),
    "section": str,
    "measurements": list,
    "tied": list,
    "found_by": str,
    "ids": list,
}
"""The columns of a table of findings, with the type of their values; lists are of texts."""


def reported(documents: Iterable[LinkedDocument], run: OutputRun) -> Iterator[LinkedDocument]:
    """Give each document with the ids and candidates that the settings ask for."""
    config = run.config
    for linked in documents:
        yield report_document(
            linked, run.ids, all_ids=config.all_ids, all_candidates=config.all_candidates
        )


def finding_rows(
    documents: Iterable[LinkedDocument], run: OutputRun
) -> Iterator[list[dict[str, Any]]]:
    """Give the findings of each document: a row a mention, with the columns of ``COLUMNS``."""
    for linked in reported(documents, run):
        yield [_row(linked.document.id, mention) for mention in linked.mentions]


def _row(document: str, mention: LinkedMention) -> dict[str, Any]:
    answer = mention.answer
    first = mention.candidates[0] if mention.candidates else None
    said = mention.assertion is not None
    return {
        "document": document,
        "start": mention.start,
        "end": mention.end,
        "text": mention.text,
        "form": mention.form,
        "concept": mention.concept,
        "name": mention.name,
        "types": list(mention.types),
        "score": None if mention.score is None else round(mention.score, DECIMALS),
        "probability": (
            None if mention.probability is None else round(mention.probability, DECIMALS)
        ),
        "status": mention.status,
        **{flag: getattr(mention, flag) if said else None for flag in FLAGS},
        "section": mention.section,
        "measurements": [each.text for each in mention.measurements],
        "tied": list(mention.ambiguous) if answer else [],
        "found_by": None if first is None else found_by(first),
        "ids": list(answer.ids) if answer else [],
    }


def found_by(candidate: Candidate) -> str:
    """Say what found a candidate: the generators, their ranks, and the name if it is another."""
    ranks = ", ".join(f"{item.generator} #{item.rank}" for item in candidate.evidence)
    if candidate.name == candidate.concept_name:
        return ranks
    return f"{ranks}: {candidate.name}" if ranks else candidate.name
