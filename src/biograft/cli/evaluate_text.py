"""``biograft evaluate text``: how well mentions are found in texts, and linked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from biograft.cli.gold_warnings import warn_left_out, warn_unknown
from biograft.cli.options import (
    Calibration,
    Index,
    Json,
    Kb,
    Languages,
    Model,
    NoAbbreviations,
    NoComposites,
    Quiet,
    Seed,
    Threshold,
    Types,
    split_languages,
    split_list,
)

if TYPE_CHECKING:
    from biograft.evaluation import GoldTexts, Score, TextResult


def text(
    kb: Kb,
    gold: Annotated[str, typer.Option(metavar="PATH", help="Gold standard: a file of texts.")],
    form: Annotated[str, typer.Option("--format", metavar="F", help="pubtator or sample.")],
    index: Index = None,
    model: Model = None,
    calibration: Calibration = None,
    threshold: Threshold = None,
    types: Types = "",
    limit: Annotated[
        int, typer.Option(metavar="N", min=0, help="The first N documents only; 0: all.")
    ] = 0,
    no_abbreviations: NoAbbreviations = False,
    no_composites: NoComposites = False,
    lang: Languages = "",
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure from end to end: find mentions in bare texts, and link them.

    The mentions of the gold are only compared with, never shown to the linker. spans: a mention
    of exactly this span is found; mentions: and its concepts are exactly the gold's; documents:
    the set of concepts of each document. Gold mentions without a concept (NIL) and answers of
    NIL count as spans, not as concepts. With --types all that is found is compared with the
    mentions of these types. Figures are in percent, their 95 % intervals by drawing documents.
    """
    from biograft.evaluation import evaluate_text, read_gold_texts
    from biograft.kb import KnowledgeBase
    from biograft.linking import Linker
    from biograft.progress import Progress

    base = KnowledgeBase.open(kb)
    asked = read_gold_texts(gold, form, types=split_list(types), limit=limit)
    linker = Linker.open(
        base, index, model, calibration,
        k=1, threshold=threshold,
        abbreviations=not no_abbreviations, composites=not no_composites,
        languages=split_languages(lang),
    )  # fmt: skip
    result = evaluate_text(linker, asked.documents, progress=Progress(enabled=not quiet), seed=seed)
    _warn(result, asked)
    if as_json:
        left_out = dict(asked.log.filtered) | dict(asked.log.rejected.counts)
        values = {"format": form, **result.to_json(), "left_out": left_out}
        typer.echo(json.dumps(values, ensure_ascii=False))
    else:
        _print(result)


def _warn(result: TextResult, asked: GoldTexts) -> None:
    """Say what makes the figures other than they look."""
    warn_left_out(asked.log.rejected.counts, "mentions of the gold")
    warn_unknown(result.unknown, "; mentions of them cannot be right, and count as missed")


def _print(result: TextResult) -> None:
    nil = f", {result.n_nil:,} of them without a concept" if result.n_nil else ""
    typer.echo(f"{result.n_documents:,} documents, {result.n_mentions:,} gold mentions{nil}")
    cells = "".join(f"{name:>26}" for name in ("precision", "recall", "F1"))
    typer.echo(f"  {'':9}{cells}{'right':>9}{'wrong':>9}{'missed':>9}")
    for level, score in result.scores.items():
        typer.echo(f"  {level:9}{_figures(score)}")


def _figures(score: Score) -> str:
    counts, cells = score.counts, []
    for name, within in score.intervals.items():
        value = 100 * getattr(counts, name)
        cells.append(f"{value:8.2f} ({100 * within.low:6.2f}-{100 * within.high:6.2f})".rjust(26))
    cells += [f"{n:>9,}" for n in (counts.right, counts.wrong, counts.missed)]
    return "".join(cells)
