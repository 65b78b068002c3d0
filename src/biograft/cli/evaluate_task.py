"""``biograft evaluate task``: a trained model of a task on a file, and runs against each other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from biograft.cli.gold_warnings import warn_left_out
from biograft.cli.options import Json
from biograft.errors import ConfigError


def task(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Task model, or RUN of one.")],
    data: Annotated[
        list[str] | None, typer.Option(metavar="PATH", help="File to measure the model on.")
    ] = None,
    form: Annotated[
        str, typer.Option("--format", metavar="F", help="Its format; default: recognised.")
    ] = "",
    part: Annotated[
        str, typer.Option(metavar="test", help="Part of a file that holds several (DDI).")
    ] = "",
    grouped: Annotated[bool, typer.Option("--grouped", help="ChemProt: BLURB's groups.")] = False,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="Write the answers.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Compare the runs MODEL and RUN over their seeds."),
    ] = None,
    figure: Annotated[
        float | None,
        typer.Option(
            metavar="0.856", help="Compare the run MODEL with a published figure of its kind."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure a model on a file, or compare runs.

    Classes are measured one by one and together (F1, micro), answers of questions by acc@1 and
    MRR. Runs are compared by F1 or acc@1 of their seeds on the test set both were trained with:
    Welch's t-test and, where the seeds are the same, the paired one; with a published figure by
    a one-sample t-test.
    """
    from biograft.tasks import compare_runs, compare_with_figure

    found: dict[str, Any] = {}
    asked = _Asked(form, part, grouped, out)
    if data:
        found["data"] = _measure(model, data, asked)
    else:
        asked.refuse_without_data()
    if against is not None:
        found["against"] = compare_runs(model, against)
    if figure is not None:
        found["figure"] = compare_with_figure(model, figure)
    if not found:
        raise ConfigError("name what to measure: --data, --against or --figure")
    if as_json:
        typer.echo(json.dumps({"model": str(model), **found}, ensure_ascii=False))
    else:
        _print(found)


class _Asked:
    """How the file is to be read, and where answers go."""

    def __init__(self, form: str, part: str, grouped: bool, out: Path | None) -> None:
        self.form, self.part, self.grouped, self.out = form, part, grouped, out

    def refuse_without_data(self) -> None:
        """Refuse what says something of a file where none is named."""
        given = {
            "--format": self.form,
            "--part": self.part,
            "--grouped": self.grouped,
            "--out": self.out,
        }
        named = [name for name, value in given.items() if value]
        if named:
            raise ConfigError(f"{', '.join(named)}: means nothing without a file; name it (--data)")


def _measure(place: Path, paths: list[str], asked: _Asked) -> dict[str, Any]:
    from biograft.tasks import TASKS, open_task
    from biograft.tasks.config import DataConfig

    model = open_task(place)
    kind = TASKS.load(model.kind)
    data = DataConfig(format=asked.form, has_parts=bool(asked.part), grouped=asked.grouped)
    read = kind.read(paths, asked.part or "test", data)
    warn_left_out(read.rejected, "rows")
    answers = model.predict(read.examples)
    if asked.out is not None:
        model.write(read.examples, answers, asked.out)
    report = model.report(read.examples, answers).to_json()
    return {"n": len(read.examples), "figures": list(kind.figures), **report}


def _print(found: Mapping[str, Any]) -> None:
    if "data" in found:
        _print_report(found["data"])
    for name in ("against", "figure"):
        if name in found:
            said = found[name]
            main = said["figure"]
            typer.echo(
                f"  {main} {said[main]:.4f} against {said['against']:.4f}: "
                f"{said['difference']:+.4f}"
            )
            for test in ("welch", "paired", "one_sample"):
                if test in said:
                    typer.echo(f"  {test.replace('_', '-')} t-test: p = {said[test]['p']:.4f}")


def _print_report(report: Mapping[str, Any]) -> None:
    """Print the classes, where there are any, all of them together, and chance."""
    for name, figures in report.get("classes", {}).items():
        shown = ", ".join(f"{key} {figures[key]:.4f}" for key in ("f1", "precision", "recall"))
        typer.echo(f"  {name or '(entity)':20} {shown} ({figures['right'] + figures['missed']:,})")
    names = report["figures"]
    typer.echo(f"  {'all':20} " + ", ".join(f"{name} {report[name]:.4f}" for name in names))
    if "chance" in report:
        levels = [
            f"{name} {report['chance'][name]:.4f}" for name in names if name in report["chance"]
        ]
        typer.echo(f"  {'chance':20} " + ", ".join(levels))
    for reason, n in report.get("left_out", {}).items():
        typer.echo(f"  {n:,} {reason} left out", err=True)
    if report.get("n_tied"):
        typer.echo(f"  {report['n_tied']:,} questions tied, counted against the model", err=True)
