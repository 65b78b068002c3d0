"""``biograft corpus convert`` and ``formats``: documents from one format to another."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.options import Json, Overwrite

if TYPE_CHECKING:
    from biograft.corpus.formats import Conversion

_SHOWN_EXAMPLES = 3


def convert(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="File or folder of documents; gzip is read too.")
    ],
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="OUT", help="File or folder to write.")
    ],
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help="Format to write.")],
    form: Annotated[
        str, typer.Option("--from", metavar="FORMAT", help="Format; default: found by content.")
    ] = "",
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse when anything is rejected or would be lost.")
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Convert annotated documents, saying exactly what the new format could not hold.

    What is rejected or lost is in the report and does not change the exit status (0), unless
    --strict makes it an error (2): then nothing is written.
    """
    from biograft.corpus.formats import convert as convert_documents

    done = convert_documents(source, out, to, form, overwrite=overwrite, strict=strict)
    if as_json:
        _print_json({**done.to_json(), "out": str(out)})
    else:
        _print_report(done, source, out)


def formats(as_json: Json = False) -> None:
    """List the formats of documents, and what each cannot hold."""
    from biograft.corpus.formats import DOCUMENT_FORMATS, Feature

    for name, help_line in DOCUMENT_FORMATS.help().items():
        form = DOCUMENT_FORMATS.load(name)
        lacks = [str(feature) for feature in Feature if feature not in form.holds]
        if as_json:
            entry = {"format": name, "help": help_line, "writes": form.write is not None}
            _print_json({**entry, "lacks": lacks})
        else:
            typer.echo(f"{name:12} {help_line}")
            if lacks and form.write is not None:
                typer.echo(f"{'':12} loses {', '.join(lacks)}")


def _print_report(done: Conversion, source: Path, out: Path) -> None:
    """Say what was read, what was wrong with it, and what was lost."""
    found = ", ".join(f"{n:,} {what}" for what, n in done.counts.items())
    typer.echo(f"read        {found} of {source} ({done.source})")
    for reason, n in done.log.filtered.items():
        typer.echo(f"  left out  {n:,}  {reason}")
    for what, faults in (("rejected", done.log.rejected), ("doubtful", done.log.doubtful)):
        for reason, n in faults.counts.most_common():
            typer.echo(f"  {what}  {n:,}  {reason}")
            for example in faults.examples[reason][:_SHOWN_EXAMPLES]:
                typer.echo(f"            {example.path}:{example.line}: {example.text}")
    for kind, n in done.losses.most_common():
        typer.echo(f"  lost      {n:,}  {kind}")
    typer.echo(f"written     {out} ({done.target})")


def _print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
