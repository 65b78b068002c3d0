"""``biograft evaluate``: the group of evaluations, and its command text (end to end)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from biograft.cli.evaluate_assertion import assertion
from biograft.cli.evaluate_findings import findings
from biograft.cli.evaluate_link import link
from biograft.cli.evaluate_task import task
from biograft.cli.options import (
    Calibration,
    Detection,
    Encoding,
    Index,
    Json,
    Kb,
    Languages,
    LexicalWeight,
    MentionTypes,
    Misspelt,
    Model,
    Ner,
    NoAbbreviations,
    NoComposites,
    Quiet,
    Search,
    Seed,
    Similarity,
    Threshold,
    Types,
    note_without_index,
    print_json,
    split_languages,
    split_list,
    warn_left_out,
    warn_unknown,
)
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.evaluation import Score, TextResult

app = typer.Typer(
    help="Evaluate a linker, or the model of a task.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


app.command()(link)


@app.command()
def text(
    kb: Kb,
    gold: Annotated[str, typer.Option(metavar="PATH", help="Gold standard: a file of texts.")],
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="F",
            help="sample, or one of `biograft corpus formats`; default: recognise it by content.",
        ),
    ] = "",
    encoding: Encoding = "utf-8",
    index: Index = None,
    model: Model = None,
    calibration: Calibration = None,
    threshold: Threshold = None,
    search: Search = None,
    lexical_weight: LexicalWeight = None,
    similarity: Similarity = None,
    ner: Ner = None,
    detection: Detection = None,
    mention_types: MentionTypes = "",
    types: Types = "",
    limit: Annotated[
        int, typer.Option(metavar="N", min=0, help="Evaluate the first N documents; 0: all.")
    ] = 0,
    misspelt: Misspelt = True,
    no_abbreviations: NoAbbreviations = False,
    no_composites: NoComposites = False,
    lang: Languages = "",
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
    """
    from biograft.evaluation import evaluate_text, read_gold_texts
    from biograft.kb import KnowledgeBase
    from biograft.linking import Linker

    base = KnowledgeBase.open(kb)
    gold_set = read_gold_texts(gold, form, types=split_list(types), limit=limit, encoding=encoding)
    note_without_index(base, index, quiet=quiet)
    linker = Linker.open(
        base, index, model, calibration, ner,
        k=1, threshold=threshold,
        detection=detection, mention_types=split_list(mention_types),
        search=search, lexical_weight=lexical_weight, similarity=similarity,
        misspelt=misspelt, abbreviations=not no_abbreviations, composites=not no_composites,
        assertions=False, languages=split_languages(lang),
    )  # fmt: skip
    progress = Progress(enabled=not quiet)
    result = evaluate_text(linker, gold_set.documents, progress=progress, seed=seed)
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
