"""``biograft evaluate``: the group of evaluations, and its commands text and task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.evaluate_link import link
from biograft.cli.options import (
    Calibration,
    Index,
    Json,
    Kb,
    Languages,
    LexicalWeight,
    Model,
    NoAbbreviations,
    NoComposites,
    Quiet,
    Search,
    Seed,
    Similarity,
    Threshold,
    Types,
    print_json,
    split_languages,
    split_list,
    warn_left_out,
    warn_unknown,
)
from biograft.errors import ConfigError
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
    form: Annotated[str, typer.Option("--format", metavar="F", help="pubtator or sample.")],
    index: Index = None,
    model: Model = None,
    calibration: Calibration = None,
    threshold: Threshold = None,
    search: Search = None,
    lexical_weight: LexicalWeight = None,
    similarity: Similarity = None,
    types: Types = "",
    limit: Annotated[
        int, typer.Option(metavar="N", min=0, help="Evaluate the first N documents; 0: all.")
    ] = 0,
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
    gold_set = read_gold_texts(gold, form, types=split_list(types), limit=limit)
    linker = Linker.open(
        base, index, model, calibration,
        k=1, threshold=threshold,
        search=search, lexical_weight=lexical_weight, similarity=similarity,
        abbreviations=not no_abbreviations, composites=not no_composites,
        languages=split_languages(lang),
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


@dataclass(frozen=True, slots=True)
class _DataOptions:
    """How ``evaluate task`` reads its files, and where it writes the predictions."""

    form: str
    split: str
    grouped: bool
    schema: Path | None
    out: Path | None

    def refuse_without_data(self) -> None:
        """Refuse these options when no file is named."""
        options = {
            "--format": self.form,
            "--split": self.split,
            "--grouped": self.grouped,
            "--schema": self.schema,
            "--out": self.out,
        }
        names = [name for name, value in options.items() if value]
        if names:
            raise ConfigError(f"{', '.join(names)}: needs a file to read; name one with --data")


@app.command()
def task(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Task model, or RUN of one.")],
    data: Annotated[
        list[str] | None, typer.Option(metavar="PATH", help="File to evaluate on; repeatable.")
    ] = None,
    form: Annotated[
        str, typer.Option("--format", metavar="F", help="Format of --data; default: detect.")
    ] = "",
    split: Annotated[
        str, typer.Option(metavar="test", help="Split of a file that holds several (DDI).")
    ] = "",
    grouped: Annotated[bool, typer.Option("--grouped", help="BLURB's groups of ChemProt.")] = False,
    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Schema of the relations of CMeIE.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="Write the predictions.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Compare the runs MODEL and RUN over their seeds."),
    ] = None,
    published: Annotated[
        float | None,
        typer.Option(metavar="0.856", help="Compare the run MODEL with a published result."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Evaluate the model of a task on a file, or compare runs.

    Classes are scored one by one and together (micro F1), answer rankings by acc@1 and MRR. Runs
    are compared by the F1 or acc@1 of their seeds on their common test set: with Welch's t-test
    and, for equal seeds, the paired one. A published result is compared by a one-sample t-test.
    """
    from biograft.tasks import compare_runs, compare_with_value

    results: dict[str, Any] = {}
    options = _DataOptions(form, split, grouped, schema, out)
    if data:
        results["data"] = _evaluate_task(model, data, options)
    else:
        options.refuse_without_data()
    if against is not None:
        results["against"] = compare_runs(model, against)
    if published is not None:
        results["published"] = compare_with_value(model, published)
    if not results:
        raise ConfigError("nothing to do: give --data, --against or --published")
    if as_json:
        print_json({"model": str(model), **results})
        return
    if "data" in results:
        _print_task(results.pop("data"))
    for comparison in results.values():
        _print_comparison(comparison)


def _evaluate_task(folder: Path, paths: list[str], options: _DataOptions) -> dict[str, Any]:
    from biograft.tasks import TASKS, open_task
    from biograft.tasks.configs import TaskDataConfig

    model = open_task(folder)
    kind = TASKS.load(model.kind)
    data = TaskDataConfig(
        format=options.form,
        has_splits=bool(options.split),
        grouped=options.grouped,
        schema=str(options.schema or ""),
    )
    gold = kind.read(paths, options.split or "test", data)
    warn_left_out(gold.rejected, "rows")
    answers = model.predict(gold.examples)
    if options.out is not None:
        model.write(gold.examples, answers, options.out)
    report = model.report(gold.examples, answers).to_json()
    return {"n": len(gold.examples), "metrics": list(kind.metrics), **report}


def _print_task(report: Mapping[str, Any]) -> None:
    """Print each class, if there are any, all of them together, and chance."""
    for name, metrics in report.get("classes", {}).items():
        line = ", ".join(f"{key} {metrics[key]:.4f}" for key in ("f1", "precision", "recall"))
        typer.echo(f"  {name or '(entity)':20} {line} ({metrics['right'] + metrics['missed']:,})")
    names = report["metrics"]
    typer.echo(f"  {'all':20} " + ", ".join(f"{name} {report[name]:.4f}" for name in names))
    if "chance" in report:
        chance = report["chance"]
        levels = [f"{name} {chance[name]:.4f}" for name in names if name in chance]
        typer.echo(f"  {'chance':20} " + ", ".join(levels))
    for reason, n in report.get("left_out", {}).items():
        typer.echo(f"  {n:,} {reason} left out", err=True)
    if report.get("n_tied"):
        typer.echo(f"  {report['n_tied']:,} questions tied, counted as wrong", err=True)


def _print_comparison(comparison: Mapping[str, Any]) -> None:
    metric, against = comparison["metric"], comparison["against"]
    change = f"{comparison['difference']:+.4f}"
    typer.echo(f"  {metric} {comparison[metric]:.4f} vs {against:.4f}: {change}")
    for test in ("welch", "paired", "one_sample"):
        if test in comparison:
            typer.echo(f"  {test.replace('_', '-')} t-test: p = {comparison[test]['p']:.4f}")
