"""``biograft evaluate text``: how well mentions are found in texts, and linked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from biograft.evaluation import GoldTexts, Score, TextResult


def text(
    kb: Annotated[Path, typer.Option("--kb", metavar="KB", help="Folder of the knowledge base.")],
    gold: Annotated[str, typer.Option(metavar="PATH", help="Gold standard: a file of texts.")],
    form: Annotated[str, typer.Option("--format", metavar="F", help="pubtator or sample.")],
    index: Annotated[
        Path | None, typer.Option(metavar="INDEX", help="Index to search; default: by letters.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Trained linker to rank with.")
    ] = None,
    calibration: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Scores to probabilities, and when to say NIL; default: the index's, if any.",
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(metavar="P", help="Answer NIL below this probability (or score)."),
    ] = None,
    types: Annotated[
        str,
        typer.Option(
            metavar="Disease,...",
            help="Gold mentions of these types only; all that is found is compared with them.",
        ),
    ] = "",
    limit: Annotated[
        int, typer.Option(metavar="N", min=0, help="The first N documents only; 0: all.")
    ] = 0,
    no_abbreviations: Annotated[
        bool, typer.Option("--no-abbreviations", help="Do not expand abbreviations.")
    ] = False,
    no_composites: Annotated[
        bool, typer.Option("--no-composites", help="Do not take composite mentions apart.")
    ] = False,
    lang: Annotated[str, typer.Option(metavar="en,zh", help="Names in these languages only.")] = "",
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the intervals.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Measure from end to end: find mentions in bare texts, and link them.

    The mentions of the gold are only compared with, never shown to the linker. spans: a mention
    of exactly this span is found; mentions: and its concepts are exactly the gold's; documents:
    the set of concepts of each document. Gold mentions without a concept (NIL) and answers of
    NIL count as spans, not as concepts. Figures are in percent, their 95 % intervals by drawing
    documents.
    """
    from biograft.evaluation import evaluate_text, read_gold_texts
    from biograft.kb import KnowledgeBase
    from biograft.languages import language_code
    from biograft.linking import Linker
    from biograft.progress import Progress

    wanted = tuple(part.strip() for part in types.split(",") if part.strip())
    base, asked = KnowledgeBase.open(kb), read_gold_texts(gold, form, types=wanted, limit=limit)
    linker = Linker.open(
        base, index, model, calibration,
        k=1, threshold=threshold,
        abbreviations=not no_abbreviations, composites=not no_composites,
        languages=tuple(language_code(tag) for tag in lang.split(",") if tag.strip()),
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
    for reason, n in asked.log.rejected.counts.items():
        typer.echo(f"warning: {n:,} mentions of the gold left out: {reason}", err=True)
    unknown = sorted(result.unknown)
    if unknown:
        typer.echo(
            f"warning: the knowledge base does not know {len(unknown):,} gold ids "
            f"(such as {', '.join(unknown[:3])}); mentions of them cannot be right, and count as "
            "missed",
            err=True,
        )


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
