"""The command line: one file per command or group, a thin layer over the library."""

from __future__ import annotations

import errno
import importlib
import os
import signal
import sys
import warnings
from typing import Annotated, Any, NoReturn

import typer

import biograft
from biograft.errors import BiograftError, EncoderWarning
from biograft.terminal import visible

_COMMANDS = {
    "kb": "kb:app",
    "graph": "graph:app",
    "corpus": "corpus:app",
    "index": "index:index",
    "link": "link:link",
    "evaluate": "evaluate:app",
    "pretrain": "pretrain:pretrain",
    "finetune": "finetune:finetune",
    "recipe": "recipe:app",
    "checkpoint": "checkpoint:app",
    "probe": "probe:app",
    "replicate": "replicate:app",
    "demo": "demo:demo",
}
"""The module and the function, or group, of each command, in the order of the help."""


def make_app(first: str = "") -> typer.Typer:
    """Make the command line with all commands, or with one alone if the first argument names it.

    The options of one command are read in a fraction of the time of all.
    """
    app = typer.Typer(
        help="Link medical text to any ontology, and train language models that know it.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_root)
    for name in [first] if first in _COMMANDS else _COMMANDS:
        module, _, attribute = _COMMANDS[name].partition(":")
        command = getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def __getattr__(name: str) -> typer.Typer:
    """Make ``app``, the whole command line, where it is asked for (tests, documentation)."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = app = make_app()
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"biograft {biograft.__version__}")
        raise typer.Exit


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
            make_app(sys.argv[1] if len(sys.argv) > 1 else "")(prog_name="biograft")
    except BiograftError as error:
        typer.echo(f"biograft: {visible(str(error))}", err=True)
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
