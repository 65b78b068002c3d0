"""``biograft corpus tasks``: what a task file holds, and what two of them have in common."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biograft.cli.gold_warnings import warn_left_out
from biograft.cli.options import Json, Overwrite, split_list
from biograft.errors import ConfigError

if TYPE_CHECKING:
    from biograft.corpus.tasks import Overlap, Summary, TaskSet
    from biograft.sources.log import Rejections

REJECTED = 1
"""Exit status where rows were left out of what was read."""
_MOST_LABELS = 20


def tasks(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Task file, plain or gz.")],
    form: Annotated[
        str, typer.Option("--format", metavar="F", help="Its format; default: by its content.")
    ] = "",
    columns: Annotated[
        str,
        typer.Option(
            metavar="ROLE=COLUMN,...", help="For tables: what holds what (a name, or #1 ...)."
        ),
    ] = "",
    part: Annotated[str, typer.Option(metavar="train|dev|test", help="Of DDI: this part.")] = "",
    dev_list: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Of DDI: pairs of the dev documents.")
    ] = None,
    grouped: Annotated[
        bool, typer.Option("--grouped", help="Of ChemProt: relations by their groups.")
    ] = False,
    against: Annotated[
        Path | None,
        typer.Option(metavar="OTHER", help="Such as train: count what of FILE stands in it."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="Write it as JSON lines.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Say what a task file holds: examples, labels, lengths, and the level of chance.

    Broken rows are told with file and line, and left out; the exit status is then 1.
    """
    from biograft.corpus.tasks import TaskConfig, overlap, read_task, summarise, write_examples

    config = TaskConfig(
        path=file, format=form, columns=_columns(columns), part=part, dev_list=dev_list,
        grouped=grouped,
    )  # fmt: skip
    found = read_task(config)
    summary = summarise(found.examples)
    shared = None
    if against is not None:
        other = read_task(
            replace(config, path=against, format=found.format, part="train" if part else "")
        )
        shared = overlap(other.examples, found.examples)
    if out is not None:
        write_examples(found.examples, out, overwrite=overwrite)
    if as_json:
        typer.echo(json.dumps(_values(file, found, summary, shared), ensure_ascii=False))
    else:
        _show(file, found, summary, shared)
    _tell(found.log.rejected)
    if found.log.rejected.counts:
        raise typer.Exit(REJECTED)


def _columns(value: str) -> dict[str, str]:
    """Read ``first=q1,second=q2``."""
    columns = {}
    for part in split_list(value):
        role, equals, column = part.partition("=")
        if not equals or not role.strip() or not column.strip():
            raise ConfigError(f"--columns: {part!r} is not of the form role=column")
        columns[role.strip()] = column.strip()
    return columns


def _values(
    file: Path, found: TaskSet, summary: Summary, shared: Overlap | None
) -> dict[str, object]:
    values: dict[str, object] = {
        "file": str(file),
        "format": found.format,
        **summary.to_json(),
        "n_read": found.log.n_read,
        "rejected": found.log.rejected.to_json(),
        "doubtful": found.log.doubtful.to_json(),
        "notes": found.log.notes,
    }
    return values if shared is None else values | {"overlap": shared.to_json()}


def _show(file: Path, found: TaskSet, summary: Summary, shared: Overlap | None) -> None:
    lines = [f"{file}: {summary.n_examples:,} examples ({summary.kind}, format {found.format})"]
    shown = list(summary.labels.items())[:_MOST_LABELS]
    counts = ", ".join(f"{label} {n:,}" for label, n in shown)
    more = len(summary.labels) - len(shown)
    lines.append(f"labels    {counts}" + (f" and {more} more" if more else ""))
    if summary.n_unlabelled:
        lines.append(f"          {summary.n_unlabelled:,} without a label")
    length = f"{summary.longest:,} characters at most, {summary.mean_length:,.0f} on average"
    lines.append(f"texts     {length}")
    lines.append(f"repeated  {summary.n_repeated:,}")
    if summary.extra:
        named = (f"{key.removeprefix('n_')} {n:,}" for key, n in summary.extra.items())
        lines.append(f"counts    {', '.join(named).replace('_', ' ')}")
    lines.append(f"chance    {_chance(summary)}")
    if shared is not None:
        lines.append(
            f"overlap   {shared.n_seen:,} of {shared.n_examples:,} examples asked there too "
            f"({shared.n_contradicted:,} answered otherwise), "
            f"{shared.n_texts_seen:,} of {shared.n_texts:,} texts"
        )
    lines += [f"note      {note}" for note in found.log.notes]
    typer.echo("\n".join(lines))
    for reason, n in found.log.doubtful.counts.items():
        typer.echo(f"warning: {n:,} doubtful: {reason}", err=True)


def _chance(summary: Summary) -> str:
    parts = []
    for name, value in summary.chance.items():
        if isinstance(value, float):
            parts.append(f"{name} {100 * value:.1f} %")
        else:
            parts.append(f"by always answering {' + '.join(value) or 'nothing'}")
    return ", ".join(parts)


def _tell(rejected: Rejections) -> None:
    """Say what was left out, with an example of each reason."""
    warn_left_out(rejected.counts, "rows")
    for examples in rejected.examples.values():
        for example in examples[:1]:
            typer.echo(f"  {example.path}:{example.line}: {example.text}", err=True)
