"""The command line: one file per command or group, a thin layer over the library."""

from __future__ import annotations

import errno
import os
import signal
import sys
import warnings
from typing import Annotated, Any, NoReturn

import typer

import biograft
from biograft.cli import (
    checkpoint,
    corpus,
    evaluate,
    graph,
    kb,
    probe,
    recipe,
    replicate,
)
from biograft.cli.demo import demo
from biograft.cli.finetune import finetune
from biograft.cli.index import index
from biograft.cli.link import link
from biograft.cli.pretrain import pretrain
from biograft.errors import BiograftError
from biograft.nn.settings import EncoderWarning

app = typer.Typer(
    help="Link medical text to any ontology, and train language models that know it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(kb.app, name="kb")
app.add_typer(graph.app, name="graph")
app.add_typer(corpus.app, name="corpus")
app.command()(index)
app.command()(link)
app.add_typer(evaluate.app, name="evaluate")
app.command()(pretrain)
app.command()(finetune)
app.add_typer(recipe.app, name="recipe")
app.add_typer(checkpoint.app, name="checkpoint")
app.add_typer(probe.app, name="probe")
app.add_typer(replicate.app, name="replicate")
app.command()(demo)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"biograft {biograft.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; errors of the user are one line on stderr, with exit code 2."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", EncoderWarning)
            warnings.showwarning = _print_warning
            app(prog_name="biograft")
    except BiograftError as error:
        typer.echo(f"biograft: {error}", err=True)
        sys.exit(2)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO):
            raise
        typer.echo(f"biograft: the output cannot be written ({error.strerror})", err=True)
        sys.exit(2)
    except (KeyboardInterrupt, SystemExit) as error:
        # typer silently turns a closed pipe into exit code 1, an interrupt into 130
        if isinstance(error.__context__, BrokenPipeError):
            # the reader of our output (`| head`) has closed it, which is no error
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return
        if isinstance(error, SystemExit) and error.code != 130:
            raise
        typer.echo("biograft: interrupted; nothing half-written was kept", err=True)
        sys.exit(130)


def _print_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any, **__: Any
) -> None:
    """Print a warning as one line, ours without the line of code that raised it."""
    if issubclass(category, EncoderWarning):
        typer.echo(f"biograft: warning: {message}", err=True)
    else:
        sys.stderr.write(warnings.formatwarning(message, category, filename, lineno))


def _terminate(number: int, frame: Any) -> NoReturn:
    """Clean up on SIGTERM as on an interrupt."""
    raise KeyboardInterrupt
