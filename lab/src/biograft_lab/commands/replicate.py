"""The commands ``biograft replicate``: experiments that re-test the papers' claims."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from biograft.cli.options import Json
from biograft.config import split_list
from biograft.errors import ConfigError

app = typer.Typer(
    help="Re-test the papers' claims: experiments, their runs, the tables of documents.",
    no_args_is_help=True,
)


@app.command(name="list")
def list_all(
    experiments: Annotated[
        bool, typer.Option("--experiments", help="List the experiments that test the claims.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the claims of the papers, with our verdict on each.

    verdict is reproduced, same sign, no effect seen, opposite or not run. With --json also effect,
    the measured difference in percentage points (above 0 where it is as claimed), its 95 % interval
    low to high, n_seeds, the corrected p and the smallest effect that could have been seen.
    """
    from biograft_lab.replication import judge_claims, list_experiments

    rows = (
        list(list_experiments()) if experiments else [judged.to_json() for judged in judge_claims()]
    )
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row, ensure_ascii=False))
        return
    columns = ("name", "kind", "about") if experiments else ("name", "paper", "verdict", "claim")
    widths = [max(len(row[column]) for row in rows) for column in columns[:-1]]
    for row in [dict(zip(columns, columns, strict=True)), *rows]:
        cells = (f"{row[column]:{width}}" for column, width in zip(columns, widths, strict=False))
        typer.echo("  ".join([*cells, row[columns[-1]]]))


@app.command()
def run(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="An experiment of biograft, or a .toml file.")
    ],
    work: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Folder of inputs, runs and results; a stopped run continues there."
        ),
    ] = Path("replication"),
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the real data; default: BIOGRAFT_DATA."),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input", metavar="NAME=PATH", help="Where an input is, if not at WORK/NAME."
        ),
    ] = None,
    sets: Annotated[
        str, typer.Option(metavar="A,B", help="Only these sets of the experiment.")
    ] = "",
    seeds: Annotated[
        str, typer.Option(metavar="1,2,3", help="Other seeds than the experiment's.")
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File of results; default: WORK/NAME.json."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run an experiment; rows that the file of results has are not measured again."""
    from biograft_lab.places import data_folder
    from biograft_lab.replication import Experiment, ExperimentJob, run_experiment

    experiment = Experiment.load(name).restricted(split_list(sets), _numbers(seeds))
    job = ExperimentJob(
        experiment=experiment,
        work=work,
        data=data or data_folder(),
        out=out or work / f"{experiment.name}.json",
        inputs=_paths(inputs or ()),
        say=_print_json if as_json else _print_row,
        warn=lambda line: typer.echo(line, err=True),
    )
    path = run_experiment(job)
    if not path.exists():
        raise ConfigError(f"{experiment.name}: nothing could be measured")
    typer.echo(f"results: {path}", err=True)


@app.command()
def report(
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 if a document is stale.")
    ] = False,
    figures: Annotated[
        bool, typer.Option("--figures", help="Draw the figures of documents, too.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write the tables of README.md and docs/ from the files of results."""
    from biograft_lab.replication import write_tables

    stale = [str(path) for path in write_tables(check=check)]
    if figures and not check:
        from biograft_lab.replication.figures import draw_all

        stale += [str(path) for path in draw_all()]
    if as_json:
        typer.echo(json.dumps({"stale" if check else "written": stale}))
    else:
        for path in stale:
            typer.echo(f"{'not up to date' if check else 'written'}: {path}")
    if check and stale:
        raise typer.Exit(1)


def _numbers(text: str) -> list[int]:
    try:
        return [int(seed) for seed in split_list(text)]
    except ValueError as error:
        raise ConfigError(f"--seeds: expected numbers, found {text!r}") from error


def _paths(inputs: Sequence[str]) -> dict[str, Path]:
    pairs = [text.partition("=") for text in inputs]
    for name, equals, path in pairs:
        if not (name and equals and path):
            raise ConfigError(f"--input: expected NAME=PATH, found {name + equals + path!r}")
    return {name: Path(path) for name, _, path in pairs}


def _print_json(row: Mapping[str, Any]) -> None:
    typer.echo(json.dumps(row, ensure_ascii=False))


_SHOWN = (
    "set",
    "protocol",
    "dictionary",
    "split",
    "seed",
    "config",
    "n",
    "acc@1",
    "acc@5",
    "f1",
)


def _print_row(row: Mapping[str, Any]) -> None:
    cells = [f"{key} {row[key]}" for key in _SHOWN if key in row]
    typer.echo("  ".join(cells))
