"""``biograft checkpoint``: import published weights, export and push our models."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from biograft.cli.fields import CommandGroup
from biograft.cli.options import Folder, Json, Overwrite, print_json
from biograft.errors import ConfigError, MissingExtraError

app = CommandGroup("Import published weights, export a model, or push it to a hub.")


@app.command("import")
def import_(
    path: Annotated[Path, typer.Argument(metavar="PATH")],
    out: Folder,
    tokenizer: Annotated[str, "NAME_OR_DIR"] = "",
    as_published: Annotated[bool, "--as-published"] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Import published weights into a folder that every command loads.

    KeBioLM becomes an encoder; GenBioEL (a BART) a generative linker for `biograft link --model`.

    Args:
        path: Folder of the published model.
        tokenizer: Tokenizer of weights that were published without one.
        as_published: Compute as the published code does, bugs included.
    """
    try:
        from biograft.models.checkpoints import import_checkpoint
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", "importing weights") from error

    report = import_checkpoint(
        path, out, tokenizer=tokenizer, as_published=as_published, overwrite=overwrite
    )
    if as_json:
        print_json(report.to_json())
        return
    typer.echo(f"{report.layout}: {report.summary}: {out}")
    for note in report.notes:
        typer.echo(note, err=True)
    if report.left_out:
        typer.echo(f"left out: {', '.join(report.left_out)}", err=True)


@app.command("export")
def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR")],
    out: Folder,
    form: Annotated[str, "--as", "bert"] = "bert",
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Export a model as a plain BERT: its layers and token head, without the knowledge layer.

    Args:
        folder: Folder of the model.
        form: Layout to write.
    """
    try:
        from biograft.models.checkpoints import export_checkpoint
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", "exporting weights") from error

    result = export_checkpoint(folder, out, form=form, overwrite=overwrite)
    if as_json:
        print_json(result)
        return
    head = "with" if result["token_head"] else "without"
    typer.echo(f"{form}: {result['n_layers']} layers, {head} token head: {out}")


@app.command("average")
def average(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...")],
    out: Folder,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Average the weights of encoders: often as accurate as all of them, at the cost of one.

    Args:
        folders: Encoders of one recipe, trained with other seeds.
    """
    try:
        from biograft.training.linkers.encoder import average_encoders
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", "averaging encoders") from error

    result = average_encoders(folders, out, overwrite=overwrite)
    if as_json:
        print_json(result)
        return
    weight = result.get("lexical_weight")
    beside = f", lexical weight {weight:.3g}" if weight is not None else ""
    typer.echo(f"mean of {result['n_encoders']} encoders{beside}: {out}")


@app.command("push")
def push(
    run: Annotated[Path, typer.Argument(metavar="RUN")],
    to: Annotated[str, typer.Option("--to", metavar="OWNER/NAME", help="Name on the hub.")],
    private: Annotated[bool, typer.Option("--private", help="Only the owner sees it.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Send without asking.")] = False,
    as_json: Json = False,
) -> None:
    """Send a model to the Hugging Face hub, or the one of HF_ENDPOINT, after a confirmation.

    The files and the host are listed first. Only files of a model are sent: a folder with other
    files, such as texts or predictions, is refused.

    Args:
        run: Folder of a run, or of its model.
    """
    try:
        from biograft.models.hub import plan_push, push as send
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", "pushing a model") from error

    upload = plan_push(run, to)
    typer.echo(f"to {upload.host}/{to}{' (private)' if private else ''}:", err=True)
    for name, size in upload.files.items():
        typer.echo(f"  {name} ({size:,} bytes)", err=True)
    if not yes:
        if not sys.stdin.isatty():
            raise ConfigError("nothing was sent; --yes sends these files without asking")
        typer.confirm("Send them?", abort=True, err=True)
    address = send(run, to, private=private)
    if as_json:
        print_json({"address": address, "files": upload.files, "private": private})
        return
    typer.echo(address)
