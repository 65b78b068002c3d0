"""The command line: one file per command or group, a thin layer over the library."""

from __future__ import annotations

import errno
import os
import signal
import sys
import warnings
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

import biograft
from biograft.cli.fields import CommandGroup as CommandGroup, Offered as Offered, with_fields
from biograft.errors import (
    BiograftError,
    EncoderWarning,
    MissingExtraError,
    missing_extra,
    shorten,
    visible,
)
from biograft.language import READER
from biograft.progress import visible_output
from biograft.registry import Registry, load_object

if TYPE_CHECKING:
    from biograft.catalogue import Catalogue

_LANGUAGE_VARIABLES = ("BIOGRAFT_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
"""The first that is set decides on the language."""

_NO_UTF8 = "surrogates not allowed"
"""Error text of Python for bytes of a path that are not UTF-8."""

_MESSAGE_TEXT = 4000
"""Longest printed error message of other libraries, in characters."""

_COMPLETION = "_BIOGRAFT_COMPLETE"
"""Set by the shell that asks what a line may go on with."""

_COMMANDS = {
    "kb": "kb:app",
    "graph": "graph:app",
    "corpus": "corpus:app",
    "index": "index:index",
    "link": "link:link",
    "map": "map:map_column",
    "match": "match:match",
    "mapping": "mapping:app",
    "review": "review:app",
    "learn": "learn:learn_from",
    "evaluate": "evaluate:app",
    "cblue": "cblue:app",
    "pretrain": "pretrain:pretrain",
    "finetune": "finetune:finetune",
    "recipe": "recipe:app",
    "checkpoint": "checkpoint:app",
    "check": "check:check",
    "verify": "verify:verify",
    "serve": "serve:serve",
    "key": "serve:key_app",
    "mcp": "serve:mcp",
    "doctor": "doctor:doctor",
    "demo": "demo:demo",
}
"""The module and the function, or group, of each command, in the order of the help."""

_WITH_TEXT = ("corpus", "link", "learn", "review", "evaluate", "serve")
"""Commands that write words of texts: the files and folders that they make are for their owner."""

COMMANDS: Registry[Any] = Registry(
    "command",
    {name: (target, "") for name, target in _COMMANDS.items()},
    group="biograft.commands",
    home=__name__,
)
"""These and those of other packages: each a function, or a ``typer.Typer`` for a group."""


def make_app(first: str | None = None) -> typer.Typer:
    """Make the command line of biograft's own commands, or as a call needs it.

    ``first`` is the first word of a call. If it names a command, only this one is there, since the
    options of one are read in a fraction of the time of all; else all are, those of other packages
    by name alone, without an import.
    """
    app = typer.Typer(
        help="Find, check and map medical concepts with any ontology, offline.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_root)
    if first and first not in _COMMANDS and first in COMMANDS:
        _add(app, first, COMMANDS.load(first))
        return app
    for name in [first] if first in _COMMANDS else _COMMANDS:
        _add(app, name, load_object(f"{__name__}.{_COMMANDS[name]}"))
    if first is not None and first not in _COMMANDS:
        for name, about in COMMANDS.help().items():
            if name not in _COMMANDS:
                app.command(name, help=about)(lambda: None)
    return app


def _add(app: typer.Typer, name: str, command: Any) -> None:
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name)
    else:
        app.command(name)(with_fields(command))


def __getattr__(name: str) -> typer.Typer:
    """Make ``app``, biograft's own commands, where it is asked for (tests, documentation)."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = app = make_app()
    return app


def _first_argument() -> str:
    """Return the command that is called, or whose arguments the shell completes; empty for none."""
    words = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    if _COMPLETION in os.environ:
        typed = words.split()
        return typed[1] if len(typed) > 2 or (words.endswith(" ") and len(typed) > 1) else ""
    return next((word for word in sys.argv[1:] if not word.startswith("-")), "")


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


def _open_catalogue() -> Catalogue | None:
    """Open the texts of help and errors in the language of the environment; None for English."""
    settings = (os.environ.get(name) for name in _LANGUAGE_VARIABLES)
    if not next((setting for setting in settings if setting), "").lower().startswith("zh"):
        return None
    try:
        "中".encode(sys.stderr.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return None  # the terminal could not show it
    from biograft.catalogue import Catalogue

    return Catalogue.open("zh")


def main() -> None:
    """Run the command line; nothing that it prints acts on the terminal."""
    mask = os.umask(0o077)
    if _first_argument() not in _WITH_TEXT:
        os.umask(mask)
    try:
        with visible_output():
            _run()
    finally:
        os.umask(mask)
        READER.language, READER.translate = "", str


def _run() -> None:
    """Run the command line; errors of the user are one line on stderr, with exit code 2."""
    signal.signal(signal.SIGTERM, _terminate)
    catalogue = _open_catalogue()
    if catalogue is not None:
        READER.language, READER.translate = "zh", catalogue.line

    def fail(error: Exception | str, code: int = 2) -> NoReturn:
        message = str(error) if catalogue is None else catalogue.error(error)
        typer.echo(f"biograft: {shorten(visible(message), _MESSAGE_TEXT)}", err=True)
        sys.exit(code)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", EncoderWarning)
            warnings.showwarning = _print_warning
            first = _first_argument()
            app = make_app(first)
            if catalogue is None:
                app(prog_name="biograft")
            else:
                from biograft.cli.translation import run

                home = "" if first in _COMMANDS else COMMANDS.module(first)
                catalogue = catalogue.extended(home)
                run(catalogue, app, "biograft")
    except BiograftError as error:
        fail(error)
    except ModuleNotFoundError as error:
        if error.name == "torch":
            fail(MissingExtraError("models", "this command"))
        fail(missing_extra(error, "this command"))
    except UnicodeEncodeError as error:
        if error.reason != _NO_UTF8:
            raise
        named = next((each for each in sys.argv[1:] if os.fsencode(each) != _utf8(each)), "a path")
        fail(f"{named}: holds bytes that are not UTF-8; rename it")
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO):
            raise
        fail(_disk_error(error))
    except (KeyboardInterrupt, SystemExit) as error:
        # typer silently turns a closed pipe into exit code 1, an interrupt into 130
        if isinstance(error.__context__, BrokenPipeError):
            # the reader of our output (`| head`) has closed it, which is no error
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return
        if isinstance(error, SystemExit) and error.code != 130:
            raise
        fail("interrupted; only what --resume continues was kept", 130)


def _utf8(text: str) -> bytes:
    return text.encode(errors="replace")


def _disk_error(error: OSError) -> str:
    """Say what a disk could not do; that it is full concerns the output, other errors any file."""
    if error.errno == errno.ENOSPC:
        return f"the output cannot be written ({error.strerror})"
    return f"{error.filename or 'a file'} cannot be read or written ({error.strerror})"


def _print_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any, **__: Any
) -> None:
    """Print a warning as one line, ours without the line of code that raised it."""
    if issubclass(category, EncoderWarning):
        typer.echo(f"biograft: warning: {visible(str(message))}", err=True)
    else:
        sys.stderr.write(warnings.formatwarning(message, category, filename, lineno))


def _terminate(number: int, frame: Any) -> NoReturn:
    """Clean up on SIGTERM as on an interrupt."""
    raise KeyboardInterrupt
