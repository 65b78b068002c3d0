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
            metavar="F1", help="Compare the run MODEL with a published F1, such as 0.856."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure a model on a file, by class and over all classes (F1, micro), or compare runs.

    Runs are compared by the F1 of their seeds on the test set that both were trained with:
    Welch's t-test and, where the seeds are the same, the paired one; with a published figure by
    a one-sample t-test.
    """
    from biograft.tasks import compare_runs, compare_with_figure

    found: dict[str, Any] = {}
    if data:
        found["data"] = _measure(model, data, _Asked(form, part, grouped, out))
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


def _measure(place: Path, paths: list[str], asked: _Asked) -> dict[str, Any]:
    from biograft.tasks import TASKS, open_task
    from biograft.tasks.config import DataConfig

    model = open_task(place)
    data = DataConfig(format=asked.form, has_parts=bool(asked.part), grouped=asked.grouped)
    read = TASKS.load(model.kind).read(paths, asked.part or "test", data)
    warn_left_out(read.rejected, "rows")
    answers = model.predict(read.examples)
    if asked.out is not None:
        model.write(read.examples, answers, asked.out)
    return {"n": len(read.examples), **model.report(read.examples, answers).to_json()}


def _print(found: Mapping[str, Any]) -> None:
    if "data" in found:
        rows = {**found["data"]["classes"], "all": found["data"]}
        for name, figures in rows.items():
            shown = ", ".join(f"{key} {figures[key]:.4f}" for key in ("f1", "precision", "recall"))
            typer.echo(
                f"  {name or '(entity)':20} {shown} ({figures['right'] + figures['missed']:,})"
            )
    for name in ("against", "figure"):
        if name in found:
            said = found[name]
            typer.echo(
                f"  f1 {said['f1']:.4f} against {said['against']:.4f}: {said['difference']:+.4f}"
            )
            for test in ("welch", "paired", "one_sample"):
                if test in said:
                    typer.echo(f"  {test.replace('_', '-')} t-test: p = {said[test]['p']:.4f}")
