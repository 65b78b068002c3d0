"""Lines of text: an aligned table for the terminal, and JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from biograft.errors import visible
from biograft.language import READER
from biograft.linking.candidates import Candidate, LinkedDocument, LinkedMention
from biograft.linking.outputs.findings import found_by
from biograft.linking.outputs.output import Documents, Output, OutputRun, reported
from biograft.progress import align, cut

HEAD = ("position", "mention", "concept", "name", "score", "found by")
_MAX_WIDTH = {"mention": 40, "name": 44, "found by": 60}
_BLOCK = 500
"""Documents of one mention each whose columns are aligned together, and mentions of a part."""


def _head() -> tuple[str, ...]:
    return tuple(map(READER.translate, HEAD))


def table(linked: LinkedDocument) -> list[str]:
    """Return the lines of a document: one mention per line, with its span and answer."""
    rows = [
        row
        for mention in linked.mentions
        for row in _rows(mention, f"{mention.start}-{mention.end}", 1)
    ]
    lines = align([_head(), *rows]) if rows else [READER.translate("no mention")]
    return [*lines, *_explanations(linked.mentions)]


def _explanations(mentions: Iterable[LinkedMention]) -> Iterator[str]:
    """Give the explanations of mentions, where the linker made some."""
    for mention in mentions:
        if mention.explanation is not None:
            yield f"{mention.start}-{mention.end}  {visible(mention.text)}"
            lines = map(visible, mention.explanation.lines())
            yield from (READER.translate(f"    {line}") for line in lines)


def candidates_table(
    documents: Iterable[LinkedDocument], n_candidates: int | None = None
) -> Iterator[str]:
    """Give the lines of documents of one mention each, with their first candidates, or all.

    Args:
        documents: Linked documents of one mention each.
        n_candidates: Number of candidates; default: all.
    """
    return _term_lines(documents, n_candidates, {})


def _term_lines(
    documents: Iterable[LinkedDocument], n_candidates: int | None, state: dict[str, Any]
) -> Iterator[str]:
    """Give the lines of blocks of documents; the head stands above the first that has some."""
    head = [] if state.get("headed") else [_head()]
    for block in _blocks(documents, state):
        rows = [
            row
            for linked in block
            for mention in linked.mentions
            for row in _rows(mention, visible(linked.document.id), n_candidates)
        ]
        yield from align([*head, *rows]) if rows else ()
        yield from _explanations(mention for linked in block for mention in linked.mentions)
        head = head if not rows else []
        state["headed"] = not head
    if head:
        yield READER.translate("no mention")


def _blocks(
    documents: Iterable[LinkedDocument], state: dict[str, Any]
) -> Iterator[list[LinkedDocument]]:
    block: list[LinkedDocument] = []
    for linked in documents:
        block.append(linked)
        state["held"] = len(block) < _BLOCK
        if not state["held"]:
            yield block
            block = []
    if block:
        yield block


def _rows(
    mention: LinkedMention, label: str, n_candidates: int | None
) -> Iterable[tuple[str, ...]]:
    text = visible(mention.text)
    if mention.form != mention.text:
        text += f" ({visible(mention.form)})"
    said = mention.assertion.label if mention.assertion else ""
    status = f" [{', '.join(map(READER.translate, said.split(', ')))}]" if said else ""
    text = cut(text, _MAX_WIDTH["mention"]) + status
    if mention.concept is None:
        best = mention.candidates[0].concept_name if mention.candidates else ""
        name = READER.translate(f"nearest: {visible(best)}" if best else "nothing found")
        score = _score(mention.candidates[0]) if best else ""
        yield label, text, "NIL", cut(name, _MAX_WIDTH["name"]), score, ""
        return
    for index, candidate in enumerate(mention.candidates[:n_candidates]):
        tied = f"; as well {', '.join(candidate.tied)}" if candidate.tied else ""
        yield (
            "" if index else label,
            "" if index else text,
            visible(candidate.concept),
            cut(visible(candidate.concept_name), _MAX_WIDTH["name"]),
            _score(candidate),
            cut(READER.translate(visible(found_by(candidate) + tied)), _MAX_WIDTH["found by"]),
        )


def _score(candidate: Candidate) -> str:
    if candidate.probability is None:
        return f"{candidate.score:.3f}"
    return f"{candidate.score:.3f} (p {candidate.probability:.2f})"


def _tables(documents: Documents, run: OutputRun) -> Iterator[str]:
    """Give the table of each document, under its id unless it is the only text."""
    if run.config.terms:
        lines_of_terms = _term_lines(reported(documents, run), None, run.state)
        yield from (f"{line}\n" for line in lines_of_terms)
        return
    for number, linked in enumerate(reported(documents, run)):
        lines = table(linked)
        if number or linked.document.id != "text 1":
            lines = [*([""] if number else []), visible(linked.document.id), *lines]
        yield "".join(f"{line}\n" for line in lines)


def _json_lines(documents: Documents, run: OutputRun) -> Iterator[str]:
    """Give the line of each document in parts; few mentions at a time are there as plain values."""
    for linked in reported(documents, run):
        about = json.dumps(replace(linked, mentions=()).to_json(), ensure_ascii=False)
        before, empty, behind = about.rpartition('"mentions": []')
        yield before + empty.removesuffix("]")
        mentions, comma = iter(linked.mentions), ""
        while block := list(islice(mentions, _BLOCK)):
            yield comma + ", ".join(
                json.dumps(mention.to_json(), ensure_ascii=False) for mention in block
            )
            comma = ", "
        yield f"]{behind}\n"


TABLE = Output(chunks=_tables, resumable=True)
JSONL = Output(chunks=_json_lines, endings=(".jsonl", ".ndjson"), resumable=True, holds_text=True)
