"""``biograft checkpoint``: published weights brought in, our models given away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from biograft.cli.options import Folder, Json, Overwrite
from biograft.errors import MissingExtraError

app = typer.Typer(
    help="Bring in published weights, or give a model away as other programs read it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("import")
def import_(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Folder as published.")],
    out: Folder,
    as_published: Annotated[
        bool,
        typer.Option("--as-published", help="Compute as the published code does, slips included."),
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Bring in published weights as a folder that every command loads.

    KeBioLM becomes an encoder; GenBioEL (a BART) a linker for `biograft link --model`.
    """
    try:
        from biograft.checkpoints import import_checkpoint
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", "importing weights") from error

    report = import_checkpoint(path, out, as_published=as_published, overwrite=overwrite)
    if as_json:
        typer.echo(json.dumps(report.to_json()))
        return
    typer.echo(f"{report.layout}: {report.summary}: {out}")
    for note in report.notes:
        typer.echo(note, err=True)
    if report.left_out:
        typer.echo(f"left out: {', '.join(report.left_out)}", err=True)


@app.command("export")
def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the model.")],
    out: Folder,
    form: Annotated[str, typer.Option("--as", metavar="bert", help="Form to give it.")] = "bert",
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write a model as a plain BERT: its layers and token head, without the knowledge layer."""
    try:
        from biograft.checkpoints import export_checkpoint
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", "exporting weights") from error

    told = export_checkpoint(folder, out, form=form, overwrite=overwrite)
    if as_json:
        typer.echo(json.dumps(told))
        return
    head = "with" if told["token_head"] else "without"
    typer.echo(f"{form}: {told['n_layers']} layers, {head} token head: {out}")
