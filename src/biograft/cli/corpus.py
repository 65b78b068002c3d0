"""``biograft corpus``: convert, formats, annotate, exclude, segment, tasks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biograft.cli.corpus_annotate import annotate
from biograft.cli.corpus_exclude import exclude
from biograft.cli.corpus_segment import segment
from biograft.cli.corpus_stop_words import stop_words
from biograft.cli.fields import CommandGroup
from biograft.cli.options import REJECTED, Json, Overwrite, print_json, warn_left_out
from biograft.config import split_columns
from biograft.errors import visible

if TYPE_CHECKING:
    from biograft.text.formats import Conversion
    from biograft.text.tasks import Overlap, Summary, TaskSet

_MAX_EXAMPLES = 3
_MAX_LABELS = 20

app = CommandGroup("Convert and annotate corpora, segment names, inspect task files.")


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN")],
    out: Annotated[Path, "-o", "--out", "OUT"],
    to: Annotated[str, "FORMAT"],
    form: Annotated[str, "--from", "FORMAT"] = "",
    strict: Annotated[bool, "--strict"] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Convert annotated documents, and report what the new format cannot hold.

    Rejected rows and losses are reported; the exit status stays 0. With --strict they are an
    error (2), and nothing is written.

    Args:
        source: File or folder of documents; gzip is read too.
        out: File or folder to write.
        to: Format to write.
        form: Format of IN; default: detect by content.
        strict: Fail if anything is rejected or would be lost.
    """
    from biograft.text.formats import convert as convert_documents

    conversion = convert_documents(source, out, to, form, overwrite=overwrite, strict=strict)
    if as_json:
        print_json({**conversion.to_json(), "out": str(out)})
    else:
        _print_conversion(conversion, source, out)


def _print_conversion(conversion: Conversion, source: Path, out: Path) -> None:
    counts = ", ".join(f"{n:,} {what}" for what, n in conversion.counts.items())
    typer.echo(f"read        {counts} of {source} ({conversion.source})")
    log = conversion.log
    for reason, n in log.filtered.items():
        typer.echo(f"  left out  {n:,}  {reason}")
    for what, faults in (("rejected", log.rejected), ("doubtful", log.doubtful)):
        for reason, n in faults.counts.most_common():
            typer.echo(f"  {what}  {n:,}  {reason}")
            for example in faults.examples[reason][:_MAX_EXAMPLES]:
                typer.echo(visible(f"            {example.path}:{example.line}: {example.text}"))
    for kind, n in conversion.losses.most_common():
        typer.echo(f"  lost      {n:,}  {kind}")
    typer.echo(f"written     {out} ({conversion.target})")


@app.command()
def formats(as_json: Json = False) -> None:
    """List the document formats, and what each cannot hold."""
    from biograft.text.formats import DOCUMENT_FORMATS, Feature

    for name, help_line in DOCUMENT_FORMATS.help().items():
        form = DOCUMENT_FORMATS.load(name)
        lacks = [str(feature) for feature in Feature if feature not in form.holds]
        if as_json:
            entry = {"format": name, "help": help_line, "writes": form.write is not None}
            print_json({**entry, "lacks": lacks})
        else:
            typer.echo(f"{name:12} {help_line}")
            if lacks and form.write is not None:
                typer.echo(f"{'':12} loses {', '.join(lacks)}")


app.command()(annotate)
app.command()(exclude)
app.command()(segment)
app.command()(stop_words)


@app.command()
def tasks(
    file: Annotated[Path, typer.Argument(metavar="FILE")],
    form: Annotated[str, "--format", "F"] = "",
    columns: Annotated[str, "ROLE=COLUMN,..."] = "",
    split: Annotated[str, "train|dev|test"] = "",
    dev_list: Annotated[Path | None, "FILE"] = None,
    grouped: Annotated[bool, "--grouped"] = False,
    schema: Annotated[Path | None, "FILE"] = None,
    against: Annotated[Path | None, "OTHER"] = None,
    out: Annotated[Path | None, "-o", "--out", "FILE"] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Summarise a task file: examples, labels, lengths, and the level of chance.

    Broken rows are reported with file and line, and left out; the exit status is then 1.

    Args:
        file: Task file, plain or gz.
        form: Format; default: detect by content.
        columns: For tables: the column of each role (a name, or #1).
        split: Split to read, for DDI.
        dev_list: Pairs of the dev documents, for DDI.
        grouped: Read relations as their groups, for ChemProt.
        schema: Schema of the relations, for CMeIE.
        against: Count the overlap with this file, such as train.
        out: Write the examples as JSON lines.
    """
    from biograft.text.tasks import TaskConfig, overlap, read_task, summarise, write_examples

    config = TaskConfig(
        path=file,
        format=form,
        columns=split_columns(columns),
        split=split,
        dev_list=dev_list,
        grouped=grouped,
        schema=schema,
    )
    task = read_task(config)
    summary, shared = summarise(task.examples), None
    if against is not None:
        other = read_task(
            replace(config, path=against, format=task.format, split="train" if split else "")
        )
        shared = overlap(other.examples, task.examples)
    if out is not None:
        write_examples(task.examples, out, overwrite=overwrite)
    if as_json:
        print_json(_task_json(file, task, summary, shared))
    else:
        _print_task(file, task, summary, shared)
    rejected = task.log.rejected
    warn_left_out(rejected.counts, "rows")
    for examples in rejected.examples.values():
        for example in examples[:1]:
            typer.echo(visible(f"  {example.path}:{example.line}: {example.text}"), err=True)
    if rejected.counts:
        raise typer.Exit(REJECTED)


def _task_json(
    file: Path, task: TaskSet, summary: Summary, shared: Overlap | None
) -> dict[str, object]:
    values: dict[str, object] = {
        "file": str(file),
        "format": task.format,
        **summary.to_json(),
        "n_read": task.log.n_read,
        "rejected": task.log.rejected.to_json(),
        "doubtful": task.log.doubtful.to_json(),
        "notes": task.log.notes,
    }
    return values if shared is None else values | {"overlap": shared.to_json()}


def _print_task(file: Path, task: TaskSet, summary: Summary, shared: Overlap | None) -> None:
    lines = [f"{file}: {summary.n_examples:,} examples ({summary.kind}, format {task.format})"]
    labels = list(summary.labels.items())[:_MAX_LABELS]
    counts = ", ".join(f"{label} {n:,}" for label, n in labels)
    n_more = len(summary.labels) - len(labels)
    lines.append(f"labels    {counts}" + (f" and {n_more} more" if n_more else ""))
    if summary.n_unlabelled:
        lines.append(f"          {summary.n_unlabelled:,} without a label")
    lines.append(
        f"texts     up to {summary.max_length:,} characters, {summary.mean_length:,.0f} on average"
    )
    lines.append(f"repeated  {summary.n_repeated:,}")
    if summary.extra:
        extra = (f"{key.removeprefix('n_')} {n:,}" for key, n in summary.extra.items())
        lines.append(f"counts    {', '.join(extra).replace('_', ' ')}")
    lines.append(f"chance    {_chance(summary)}")
    if shared is not None:
        lines.append(
            f"overlap   {shared.n_seen:,} of {shared.n_examples:,} examples are in both "
            f"({shared.n_contradicted:,} with another answer), "
            f"{shared.n_texts_seen:,} of {shared.n_texts:,} texts"
        )
    lines += [f"note      {note}" for note in task.log.notes]
    typer.echo("\n".join(lines))
    for reason, n in task.log.doubtful.counts.items():
        typer.echo(f"warning: {n:,} doubtful: {reason}", err=True)


def _chance(summary: Summary) -> str:
    levels = []
    for name, value in summary.chance.items():
        if isinstance(value, float):
            levels.append(f"{name} {100 * value:.1f} %")
        else:
            levels.append(f"by always answering {' + '.join(value) or 'nothing'}")
    return ", ".join(levels)
