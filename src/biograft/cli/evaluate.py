"""``biograft evaluate``: the group of evaluations, and its command text (end to end)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from biograft.cli.evaluate_assertion import assertion
from biograft.cli.evaluate_findings import NOT_OF_TEXT, findings
from biograft.cli.evaluate_link import link
from biograft.cli.evaluate_task import task
from biograft.cli.fields import CommandGroup, Offered
from biograft.cli.options import (
    Json,
    Kb,
    Quiet,
    Seed,
    Types,
    note_without_index,
    print_json,
    warn_left_out,
    warn_unknown,
)
from biograft.config import split_list
from biograft.linking.config import LinkerConfig, LinkerFiles
from biograft.progress import Progress
from biograft.text.input_config import InputConfig

if TYPE_CHECKING:
    from biograft.evaluation import Score, TextResult

app = CommandGroup("Evaluate a linker, or the model of a task.")


app.command()(link)


@app.command()
def text(
    kb: Kb,
    files: LinkerFiles,
    reading: Annotated[InputConfig, Offered("encoding")],
    linker: Annotated[LinkerConfig, Offered(without=NOT_OF_TEXT, k=1, assertions=False)],
    gold: Annotated[str, "PATH"],
    form: Annotated[str, "--format", "F"] = "",
    types: Types = "",
    limit: Annotated[int, typer.Option(metavar="N", min=0)] = 0,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Evaluate end to end: find the mentions in plain text, and link them.

    The linker never sees the gold mentions. Three levels: "spans" counts mentions with exactly
    the gold span; "mentions" those that also have exactly the gold concepts; "documents" the set
    of concepts of each document. Gold mentions without a concept, and NIL answers, count as
    spans only. With --types, every prediction is compared with the mentions of these types.
    Metrics are in percent, with 95 % intervals by a bootstrap over documents.

    Args:
        gold: Gold standard: a file of texts.
        form: sample, or one of `biograft corpus formats`; default: recognise it by content.
        limit: Evaluate the first N documents; 0: all.
    """
    from biograft.evaluation import evaluate_text, read_gold_texts
    from biograft.kb import KnowledgeBase
    from biograft.linking import Linker

    base = KnowledgeBase.open(kb)
    gold_set = read_gold_texts(
        gold, form, types=split_list(types), limit=limit, encoding=reading.encoding
    )
    note_without_index(base, files.index, quiet=quiet)
    opened = Linker.open(base, **vars(files), config=linker)
    progress = Progress(enabled=not quiet)
    result = evaluate_text(opened, gold_set.documents, progress=progress, seed=seed)
    warn_left_out(gold_set.log.rejected.counts, "mentions of the gold")
    warn_unknown(result.unknown, "; their mentions count as missed")
    if as_json:
        left_out = {**gold_set.log.filtered, **gold_set.log.rejected.counts}
        print_json({"format": form, **result.to_json(), "left_out": left_out})
    else:
        _print_text(result)


def _print_text(result: TextResult) -> None:
    nil = f", {result.n_nil:,} of them without a concept" if result.n_nil else ""
    typer.echo(f"{result.n_documents:,} documents, {result.n_mentions:,} gold mentions{nil}")
    cells = "".join(f"{name:>26}" for name in ("precision", "recall", "F1"))
    typer.echo(f"  {'':9}{cells}{'right':>9}{'wrong':>9}{'missed':>9}")
    for level, score in result.scores.items():
        typer.echo(f"  {level:9}{_score_cells(score)}")


def _score_cells(score: Score) -> str:
    counts, cells = score.counts, []
    for name, interval in score.intervals.items():
        value, low, high = 100 * getattr(counts, name), 100 * interval.low, 100 * interval.high
        cells.append(f"{value:8.2f} ({low:6.2f}-{high:6.2f})".rjust(26))
    cells += [f"{n:>9,}" for n in (counts.right, counts.wrong, counts.missed)]
    return "".join(cells)


app.command()(task)
app.command()(assertion)
app.command()(findings)
