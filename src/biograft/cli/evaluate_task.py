"""``biograft evaluate task``: the model of a task on a file, or runs compared over their seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from biograft.cli.options import Json, print_json, warn_left_out
from biograft.errors import ConfigError


@dataclass(frozen=True, slots=True)
class _DataOptions:
    """Options of ``evaluate task``: input format, and output path of the predictions."""

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


def task(
    model: Annotated[Path, typer.Argument(metavar="MODEL")],
    data: Annotated[list[str] | None, "PATH"] = None,
    form: Annotated[str, "--format", "F"] = "",
    split: Annotated[str, "test"] = "",
    grouped: Annotated[bool, "--grouped"] = False,
    schema: Annotated[Path | None, "FILE"] = None,
    out: Annotated[Path | None, "-o", "--out", "FILE"] = None,
    against: Annotated[Path | None, "RUN"] = None,
    published: Annotated[float | None, "0.856"] = None,
    as_json: Json = False,
) -> None:
    """Evaluate the model of a task on a file, or compare runs.

    Classes are scored one by one and together (micro F1), answer rankings by acc@1 and MRR. Runs
    are compared by the F1 or acc@1 of their seeds on their common test set: with Welch's t-test
    and, for equal seeds, the paired one. A published result is compared by a one-sample t-test.

    Args:
        model: Task model, or RUN of one.
        data: File to evaluate on; repeatable.
        form: Format of --data; default: detect.
        split: Split of a file that holds several (DDI).
        grouped: BLURB's groups of ChemProt.
        schema: Schema of the relations of CMeIE.
        out: Write the predictions.
        against: Compare the runs MODEL and RUN over their seeds.
        published: Compare the run MODEL with a published result.
    """
    from biograft.training.tasks import compare_runs, compare_with_value

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
    from biograft.models.tasks import TASKS, open_task
    from biograft.models.tasks.configs import TaskDataConfig

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
