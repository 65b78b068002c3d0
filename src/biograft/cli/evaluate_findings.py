"""``biograft evaluate findings``: findings in notes, with concept and assertion status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from biograft.cli.fields import Offered
from biograft.cli.options import Json, Kb, note_without_index, print_json
from biograft.config import split_list
from biograft.linking.config import LinkerConfig, LinkerFiles

if TYPE_CHECKING:
    from biograft.evaluation import FindingsResult
    from biograft.metrics.precision_recall import Counts

FINDING_TYPES = "disease,symptom,finding"
NOT_OF_TEXT = ("k", "mentions", "types", "assertions", "explain")
"""Settings of a linker that are fixed where plain text is linked to be evaluated."""


def findings(
    kb: Kb,
    files: LinkerFiles,
    linker: Annotated[LinkerConfig, Offered(without=NOT_OF_TEXT, k=1)],
    gold: Annotated[str, "FILE|notes-en-test|..."],
    types: Annotated[str, "disease,..."] = FINDING_TYPES,
    mistakes: Annotated[bool, "--mistakes"] = False,
    as_json: Json = False,
) -> None:
    """Evaluate findings in notes: span, concept and status, of mentions and documents.

    The linker sees plain text. "spans" counts mentions with exactly the gold span, "findings" those
    with the gold concept, too, "statuses" those that also have the gold status; "documents" counts
    the concepts of each note. Metrics are in percent.

    Args:
        gold: Notes with findings, JSON lines; or notes-en-dev, notes-en-test, notes-zh-dev or
            notes-zh-test, which ship with biograft.
        types: Types of concepts that count; '': all.
        mistakes: List what was missed, wrong, or of a wrong status.
    """
    from dataclasses import asdict

    from biograft.evaluation import evaluate_findings, read_assertions
    from biograft.kb import KnowledgeBase
    from biograft.linking import Linker

    base = KnowledgeBase.open(kb)
    note_without_index(base, files.index)
    opened = Linker.open(base, **vars(files), config=linker)
    result = evaluate_findings(opened, read_assertions(gold), split_list(types))
    if as_json:
        listed = {"mistakes": [asdict(each) for each in result.mistakes]} if mistakes else {}
        print_json({"gold": gold, **result.to_json(), **listed})
        return
    print_findings(result)
    if mistakes:
        for each in result.mistakes:
            sides = [", ".join(words) or "nothing" for words in (each.expected, each.found)]
            where = f"{each.document}, {each.start}-{each.end}: {each.text}"
            typer.echo(f"{where}: expected {sides[0]}, found {sides[1]}")


def print_findings(result: FindingsResult) -> None:
    """Print the table of an evaluation."""
    typer.echo(f"{result.n_documents:,} notes, {result.n_findings:,} findings")
    names = ("precision", "recall", "F1", "right", "wrong", "missed")
    typer.echo(f"  {'':18}{''.join(f'{name:>10}' for name in names)}")
    for level, counts in result.levels.items():
        typer.echo(f"  {level:18}{_cells(counts)}")
    for status, counts in result.statuses.items():
        if counts.right + counts.missed:
            typer.echo(f"  {'- ' + status:18}{_cells(counts)}")
    if n := result.typos["mentions"]:
        found, right = result.typos["spans"], result.typos["findings"]
        typer.echo(f"  misspelt: {n} findings, {found} found, {right} with the right concept")


def _cells(counts: Counts) -> str:
    metrics = (counts.precision, counts.recall, counts.f1)
    cells = "".join(f"{100 * value:>10.2f}" for value in metrics)
    return cells + "".join(f"{n:>10,}" for n in (counts.right, counts.wrong, counts.missed))
