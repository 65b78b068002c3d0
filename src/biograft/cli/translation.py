"""The help, the errors and the lines of the command line in other languages than English.

A catalogue (``messages/zh.toml``) maps English texts to those of a language; what it lacks stays
English. Files and JSON are never translated.
"""

from __future__ import annotations

import functools
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

import typer
from typer.exceptions import TyperException
from typer.main import get_command

from biograft.errors import InputError
from biograft.progress import width

_MAX_WIDTH, _MAX_LEFT = 80, 28
_GAP = re.compile(" {2,}")
_SPACE = re.compile(r"\s+")
_PARAGRAPH = re.compile(r"\n\s*\n")
_EXTRA = re.compile(r"  \[([^\[\]]+)\]$")
_WORD = re.compile("[A-Za-z]+")
_UNIT = re.compile(r"\s+|[^\s\u2e80-\uffef]+|[\u2e80-\uffef]")
_NO_LINE_STARTS = frozenset("，。；：、！？）》”’…")


class Catalogue:
    """The texts of a language."""

    def __init__(self, texts: Mapping[str, Mapping[str, str]]) -> None:
        self._texts, self._help = texts, texts["help"]
        self._usage, self._errors = _Templates(texts["usage"]), _Templates(texts["errors"])
        self._output = _Templates(texts["output"], self._errors)

    @classmethod
    def open(cls, language: str) -> Catalogue:
        """Open the catalogue of a language, such as ``zh``."""
        text = (files("biograft.cli") / "messages" / f"{language}.toml").read_text("utf-8")
        return cls(tomllib.loads(text))

    def extended(self, module: str) -> Catalogue:
        """Return it with the texts of a command of another package.

        They are in ``messages/zh.toml`` beside the ``module`` of the command, if there.
        """
        package = module.rpartition(".")[0]
        file = files(package) / "messages" / "zh.toml" if package else None
        if file is None or not file.is_file():
            return self
        more = tomllib.loads(file.read_text("utf-8"))
        return Catalogue({part: {**own, **more.get(part, {})} for part, own in self._texts.items()})

    def help(self, text: str) -> str:
        """Translate a text of help, paragraph by paragraph."""
        paragraphs = (_SPACE.sub(" ", each).strip() for each in _PARAGRAPH.split(text))
        return "\n\n".join(self._help.get(each, each) for each in paragraphs)

    def error(self, error: Exception | str) -> str:
        """Translate an error or its message; the place and the text in it stay as they are."""
        if not isinstance(error, InputError):
            return self._errors.translate(str(error))
        place = f"{error.path}:{error.line}" if error.line else str(error.path)
        found = f"（实为：{error.text[:80]!r}）" if error.text is not None else ""
        advice = f"；{self._errors.translate(error.remedy)}" if error.remedy else ""
        return f"{place}：{self._errors.translate(error.problem)}{found}{advice}"

    def line(self, text: str) -> str:
        """Translate a line of output, or a word in it; columns stay where they begin.

        A line is an entry of the catalogue, or each of its cells is. Others stay, as do JSON and
        tables that are separated by tabs.
        """
        if text[:1] in ("{", "[") or "\t" in text or not text.strip():
            return text
        cells = _GAP.split(text)
        found = self._output.whole("  ".join(cells))
        new = [self._output.whole(cell) for cell in cells if cell] if found is None else []
        if found is None and all(each is not None for each in new):
            found = "  ".join(([] if cells[0] else [""]) + [each or "" for each in new])
        if found is None:
            return text
        starts = [0, *(gap.end() for gap in _GAP.finditer(text))]
        shown = ""
        for cell, start in zip(found.split("  "), starts, strict=False):
            shown += " " * max(width(text[:start]) - width(shown), 2 if start else 0) + cell
        return shown

    def run(self, app: typer.Typer, prog_name: str) -> None:
        """Run a program with translated help and errors of usage.

        Args:
            app: The program.
            prog_name: Its name in the help.
        """
        command: Any = get_command(app)
        for each in _walk(command):
            each.get_help, each.get_usage = _Help(self, each).text, _Help(self, each).usage
        try:
            code = command.main(prog_name=prog_name, standalone_mode=False)
        except typer.Abort:
            sys.exit(1)
        except TyperException as error:
            self._show(error)
            sys.exit(getattr(error, "exit_code", 2))
        if isinstance(code, int) and code:
            sys.exit(code)

    def _show(self, error: Any) -> None:
        context = getattr(error, "ctx", None)
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
            return
        if context is not None:
            hint = self.usage(f"Try '{context.command_path} --help' for help.")
            typer.echo(f"{context.get_usage()}\n{hint}\n", err=True)
        message = self.usage(_SPACE.sub(" ", error.format_message()))
        typer.echo(self.usage("Error: {}").format(message), err=True)

    def usage(self, text: str) -> str:
        """Translate a part of the help, or an error of usage."""
        return self._usage.translate(text)

    def extra(self, help_text: str) -> str:
        """Translate what stands in brackets behind the help of an option."""
        found = _EXTRA.search(help_text)
        if not found:
            return help_text
        parts = "；".join(self.usage(part) for part in found[1].split("; "))
        return f"{help_text[: found.start()]} [{parts}]"


class _Templates:
    """Texts with places ``{}`` for any text; of those that fit the longest counts.

    What stands at a place is translated, too, by this table. A text that fits none is translated
    by its parts: a problem and its remedy are joined by a semicolon, a place and its problem by a
    colon. In a table of ``data`` places stay as they are, but for the last one as ``{last}``.

    Args:
        texts: English texts, and those of the language.
        data: Table by which the last place is translated.
    """

    def __init__(self, texts: Mapping[str, str], data: _Templates | None = None) -> None:
        self._texts, self._data = texts, data
        self.translate = functools.lru_cache(4096)(self._translate)
        templates = sorted((key for key in texts if "{}" in key), key=_n_letters, reverse=True)
        self._templates = [(key.split("{}"), key) for key in templates]

    def _translate(self, text: str) -> str:
        return self.whole(text) or self._by_parts(text)

    def whole(self, text: str) -> str | None:
        """Translate a text that is an entry, or fits one; None for others."""
        if text in self._texts:
            return self._texts[text]
        for parts, key in self._templates:
            if not (text.startswith(parts[0]) and all(part in text for part in parts)):
                continue
            if found := _pattern(key, spaced=self._data is None).fullmatch(text):
                places = found.groups()
                if self._data is None:
                    return self._texts[key].format(*map(self.translate, places))
                last = self._data.translate(places[-1])
                last = self.whole(last) or last
                return self._texts[key].format(*places, last=last)
        return None

    def _by_parts(self, text: str) -> str:
        """Translate the parts at a mark, the one that leaves the fewest words as they are."""
        found = [text]
        for mark, joint in ((": ", "："), ("; ", "；")):
            first, split, rest = text.partition(mark)
            if split:
                parts = self.translate(first), self.translate(rest)
                if parts[1] != rest or (mark == "; " and parts[0] != first):
                    found.append(joint.join(parts))
        return min(found, key=lambda each: len(_WORD.findall(each)))


def _n_letters(template: str) -> int:
    return len(template.replace("{}", ""))


@functools.cache
def _pattern(template: str, *, spaced: bool) -> re.Pattern[str]:
    """Match a text at each place; at the beginning, none with a mark between two parts.

    Args:
        template: Text with places ``{}``.
        spaced: Whether a text may have the blanks between columns.
    """
    place = "(?:(?!; ).)+?" if spaced else "(?:(?!  ).)+?"
    first, *others = map(re.escape, template.split("{}"))
    begin = f"({place})" if first else "((?:(?!: |; ).)+?)"
    return re.compile(first + begin + f"({place})".join(others), re.DOTALL)


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
