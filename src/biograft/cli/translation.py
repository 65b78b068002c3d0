"""The help and the errors of usage of the command line in other languages than English."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import typer
from typer.exceptions import TyperException
from typer.main import get_command

from biograft.catalogue import Catalogue
from biograft.progress import width

_MAX_WIDTH, _MAX_LEFT = 80, 28
_SPACE = re.compile(r"\s+")
_UNIT = re.compile(r"\s+|[^\s\u2e80-\uffef]+|[\u2e80-\uffef]")
_NO_LINE_STARTS = frozenset("，。；：、！？）》”’…")


def run(catalogue: Catalogue, app: typer.Typer, prog_name: str) -> None:
    """Run a program with translated help and errors of usage.

    Args:
        catalogue: Texts of the language.
        app: The program.
        prog_name: Its name in the help.
    """
    command: Any = get_command(app)
    for each in _walk(command):
        each.get_help, each.get_usage = _Help(catalogue, each).text, _Help(catalogue, each).usage
    try:
        code = command.main(prog_name=prog_name, standalone_mode=False)
    except typer.Abort:
        sys.exit(1)
    except TyperException as error:
        _show(catalogue, error)
        sys.exit(getattr(error, "exit_code", 2))
    if isinstance(code, int) and code:
        sys.exit(code)


def _show(catalogue: Catalogue, error: Any) -> None:
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return
    if context is not None:
        hint = catalogue.usage(f"Try '{context.command_path} --help' for help.")
        typer.echo(f"{context.get_usage()}\n{hint}\n", err=True)
    message = catalogue.usage(_SPACE.sub(" ", error.format_message()))
    typer.echo(catalogue.usage("Error: {}").format(message), err=True)


def _walk(command: Any) -> Iterator[Any]:
    yield command
    for inner in getattr(command, "commands", {}).values():
        yield from _walk(inner)


class _Help:
    """The help of one command; lines are broken by the width of their characters."""

    def __init__(self, catalogue: Catalogue, command: Any) -> None:
        self._catalogue, self._command = catalogue, command
        self._width = min(shutil.get_terminal_size().columns, _MAX_WIDTH) - 2

    def usage(self, context: Any) -> str:
        """Return the line that shows how the command is called."""
        pieces = " ".join(self._command.collect_usage_pieces(context))
        head = f"{self._catalogue.usage('Usage:')}{context.command_path}"
        return "\n".join(_wrap(f"{head} {pieces}", self._width, " " * 6))

    def text(self, context: Any) -> str:
        """Return the help of the command."""
        lines = [self.usage(context), ""]
        for paragraph in self._catalogue.help(self._command.help or "").split("\n\n"):
            lines += [*_wrap(f"  {paragraph}", self._width, "  "), ""]
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self._command.get_params(context):
            parameter.help = self._catalogue.help(parameter.help or "")
            record = parameter.get_help_record(context)
            if record is not None:
                kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
                sections[kind].append((record[0], self._catalogue.extra(record[1])))
        inner = getattr(self._command, "commands", {})
        sections["Commands"] = [
            (name, self._catalogue.help(each.help or "").split("\n\n")[0])
            for name, each in inner.items()
            if not each.hidden
        ]
        for title, rows in sections.items():
            if rows:
                lines += [f"{self._catalogue.usage(title)}：", *self._table(rows), ""]
        return "\n".join(lines).rstrip()

    def _table(self, rows: Sequence[tuple[str, str]]) -> Iterator[str]:
        column = min(max(width(left) for left, _ in rows), _MAX_LEFT) + 4
        for left, text in rows:
            lines = list(_wrap(text, self._width - column, ""))
            first = f"  {left}"
            if width(first) > column - 2:
                yield first
            else:
                padded = first + " " * (column - width(first))
                yield padded + (lines.pop(0) if lines else "")
            yield from (" " * column + line for line in lines)


def _wrap(text: str, columns: int, indent: str) -> Iterator[str]:
    """Break a text into lines of a width: at spaces, and between Chinese characters."""
    line = ""
    for unit in _UNIT.findall(text):
        fits = width(line + unit) <= columns or unit in _NO_LINE_STARTS
        if fits or not line.strip():
            line += unit
        else:
            yield line.rstrip()
            line = indent + unit.lstrip()
    if line.strip():
        yield line.rstrip()
