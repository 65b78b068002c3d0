"""Tables of task examples: CSV, TSV or JSON lines, by a mapping of columns to roles.

A layout is given on the command line (``--columns``), or declared in a few lines of TOML:
``data_sets.toml`` has those of published data sets and says what each key means. A column is named
by its header (in JSON: its key), or by its position: ``#1``. Rows are parsed line by line, so that
a malformed row does not affect others.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

from biograft.config import Choice, Config, from_mapping, load_toml
from biograft.errors import ConfigError, nearest
from biograft.kb.names import whole_number
from biograft.kb.sources.files import read_lines
from biograft.kb.sources.json_files import peek_object, read_objects
from biograft.kb.sources.table import column_position, find_delimiter, tolerant_csv, unquoted
from biograft.text.documents import Mention
from biograft.text.tasks.registry import (
    DATA_SETS_FILE,
    Answer,
    ClassExample,
    Example,
    PairExample,
    RankingExample,
    RelationExample,
    TaskConfig,
    TaskFormat,
    by_lines,
    by_list,
    unmark,
)

if TYPE_CHECKING:
    from biograft.kb.sources.log import ReadLog

SEPARATOR = "|"
ROLES = {
    "pair": (("first", "second"), ("label", "id")),
    "class": (("text",), ("label", "labels", "context", "id")),
    "ranking": (("query", "answer", "relevance"), ("id", "candidates", "answer_id")),
    "relation": (("text", "label"), ("id",)),
}
"""The roles that each kind of example needs, and those that it may have."""
_FLAGS = re.compile(r"\d+_[01](?:,\d+_[01])*")
_INDICATOR = re.compile(r"@([A-Z]+)(?:-([A-Z]+))?\$")


@dataclass(frozen=True, kw_only=True)
class Layout(Config):
    """The layout of a task file: which column has which role, and how its cells are read."""

    about: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    n_columns: int = 0
    header: str = ""
    quotes: Annotated[str, Choice("", "text", "csv")] = ""
    classes: tuple[str, ...] = ()
    labels: Annotated[str, Choice("", "flags")] = ""
    mentions: Annotated[str, Choice("", "indicators")] = ""
    marks: tuple[tuple[str, str], ...] = ()
    groups: Mapping[str, str] = field(default_factory=dict)
    json_list: bool = False
    other_keys: tuple[str, ...] = ()
    unlabelled: bool = False
    note: str = ""

    @property
    def kind(self) -> str:
        """The kind of example that the roles make."""
        known = sorted({role for roles in ROLES.values() for role in (*roles[0], *roles[1])})
        for role in self.columns:
            if role not in known:
                raise ConfigError(f"columns: no role is called {role!r}; {nearest(role, known)}")
        kinds = ["relation"] if self.marks or self.mentions else ["pair", "class", "ranking"]
        for kind in kinds:
            needed, optional = ROLES[kind]
            if set(needed) <= set(self.columns):
                if stray := set(self.columns) - {*needed, *optional}:
                    raise ConfigError(f"columns: a {kind} has no {', '.join(sorted(stray))}")
                if {"label", "labels"} <= set(self.columns):
                    raise ConfigError(
                        "columns: label is one, labels are several; map only one of both"
                    )
                return kind
        raise ConfigError(
            "columns: map first and second (pairs), text and label (classes), or query, answer and "
            "relevance (rankings)"
        )

    @property
    def is_json(self) -> bool:
        """Whether the columns are keys: neither positions nor, as far as is said, a header."""
        return not self.header and not any(each.startswith("#") for each in self.columns.values())

    def fits_object(self, value: Mapping[str, Any]) -> bool:
        """Whether the first object of a file can only have this layout."""
        inner = _INNER if "candidates" in self.columns else ()
        keys = {column for role, column in self.columns.items() if role not in inner}
        optional = {self.columns.get("label", "")} if self.unlabelled else set()
        known = {*keys, *self.other_keys} if self.json_list else {*value}
        return bool(value) and keys - optional <= set(value) <= known

    @property
    def positions(self) -> int:
        """Number of cells of a row without a header that names the columns."""
        return max(self.n_columns, *(int(each[1:]) for each in self.columns.values()))

    def fits(self, lines: list[str]) -> bool:
        """Whether the first lines of a file can only have this layout."""
        if self.header and lines[0] == self.header:
            return True
        if self.is_json:
            marks = [mark for pair in self.marks for mark in pair]
            return self.fits_object(peek_object(lines[0])) and all(
                mark in line for line in lines for mark in marks
            )
        if not (self.classes or self.mentions):
            return False
        rows = [line.split("\t") for line in lines]
        return all(
            len(row) == self.positions
            and (not self.classes or row[self._at("label")].strip() in self.classes)
            and (not self.mentions or _INDICATOR.search(row[self._at("text")]))
            for row in rows
        )

    def _at(self, role: str) -> int:
        return int(self.columns[role][1:]) - 1

    def format(self) -> TaskFormat:
        """Return the format of files with this layout."""
        options = frozenset({"grouped"} if self.groups else ())
        recognise = by_list(self.fits_object) if self.json_list else by_lines(self.fits)
        return TaskFormat(
            self.kind, lambda config, log: read_rows(self, config, log), recognise, options
        )


@dataclass(frozen=True, slots=True)
class _RoleRow:
    """The cells of a row by role; of JSON, values of any type."""

    line: int
    cells: Mapping[str, Any]
    text: str

    def get(self, role: str) -> str:
        value = self.cells.get(role, "")
        return value if isinstance(value, str) else "" if value is None else str(value)

    def empty(self, *roles: str) -> str:
        """Return the first of the roles whose cell is empty, if any."""
        return next((role for role in roles if not self.get(role).strip()), "")


class _InvalidRowError(ValueError):
    """A row that is no example."""


def read_rows(layout: Layout, config: TaskConfig, log: ReadLog) -> Iterator[Example]:
    """Read the examples of a file, in the order of its rows.

    Args:
        layout: The layout of the file.
        config: The file; ``grouped`` takes the group of each label.
        log: Counts the rows, and those that are rejected.
    """
    if layout.note:
        log.note(layout.note)
    read = _READERS[layout.kind]
    questions: dict[tuple[str, str], list[Answer]] = {}
    for row in _rows(layout, config, log):
        try:
            made = read(row, layout, config)
        except _InvalidRowError as problem:
            log.reject(str(problem), row.line, row.text)
            continue
        if isinstance(made, Answer):
            questions.setdefault((row.get("id").strip(), row.get("query")), []).append(made)
        else:
            yield made
    for (identifier, query), answers in questions.items():
        yield RankingExample(query, tuple(answers), identifier)


def _check_cells(row: _RoleRow, *roles: str) -> None:
    if empty := row.empty(*roles):
        raise _InvalidRowError(f"{empty} is empty")


def _pair(row: _RoleRow, layout: Layout, config: TaskConfig) -> PairExample:
    _check_cells(row, "first", "second", *({"label"} & set(row.cells)))
    return PairExample(row.get("first"), row.get("second"), row.get("label").strip(), row.get("id"))


def _class(row: _RoleRow, layout: Layout, config: TaskConfig) -> ClassExample:
    _check_cells(row, "text", *({"label"} & set(row.cells)))
    multi = "labels" in row.cells
    labels = _several(row.cells["labels"], layout) if multi else [row.get("label")]
    if layout.classes and labels[0].strip() not in layout.classes:
        raise _InvalidRowError(f"the label is none of {', '.join(layout.classes)}")
    kept = tuple(label.strip() for label in labels if label.strip())
    return ClassExample(row.get("text"), kept, row.get("context"), multi, row.get("id").strip())


def _several(value: Any, layout: Layout) -> list[str]:
    if layout.labels == "flags":
        if not _FLAGS.fullmatch(str(value).strip()):
            raise _InvalidRowError("labels are not of the form 0_1,1_0,...")
        flags = (label.split("_") for label in str(value).strip().split(","))
        return [name for name, flag in flags if flag == "1"]
    return list(map(str, value)) if isinstance(value, list) else str(value or "").split(SEPARATOR)


def _ranking(row: _RoleRow, layout: Layout, config: TaskConfig) -> Answer | RankingExample:
    """Make an answer, or a ranking of a row that has all answers of a question."""
    if "candidates" not in layout.columns:
        return _answer(row)
    found = row.cells.get("candidates")
    if not isinstance(found, list) or row.empty("query"):
        raise _InvalidRowError("not a query with its candidates")
    columns = layout.columns
    rows = [
        _RoleRow(row.line, {r: each.get(columns[r]) for r in _INNER if r in columns}, row.text)
        for each in found
        if isinstance(each, dict)
    ]
    if not found or len(rows) < len(found):
        raise _InvalidRowError("a query without candidates")
    return RankingExample(row.get("query"), tuple(map(_answer, rows)), row.get("id"))


_INNER = ("answer", "relevance", "answer_id")


def _answer(row: _RoleRow) -> Answer:
    grade = whole_number(row.get("relevance").strip())
    if grade is None:
        raise _InvalidRowError("relevance is not a whole number such as 0 or 1")
    _check_cells(row, *({"query"} & set(row.cells)), "answer")
    return Answer(row.get("answer"), grade, row.get("answer_id"))


def _relation(row: _RoleRow, layout: Layout, config: TaskConfig) -> RelationExample:
    _check_cells(row, "text", "label")
    text, label = row.get("text"), row.get("label").strip()
    if layout.marks:
        unmarked = unmark(text, layout.marks)
        if unmarked is None:
            shown = " and one ".join(f"{a.strip()} {b.strip()}" for a, b in layout.marks)
            raise _InvalidRowError(f"not exactly one {shown}")
        text, first, second = unmarked
    else:
        found = [
            Mention(match.start(), match.end(), match[0], type=kind)
            for match in _INDICATOR.finditer(text)
            for kind in match.groups()
            if kind
        ]
        if len(found) != 2:
            raise _InvalidRowError(f"{len(found)} indicators such as @GENE$, expected 2")
        first, second = found
    if config.grouped:
        if label not in layout.groups:
            raise _InvalidRowError("a relation of no group")
        label = layout.groups[label]
    return RelationExample(text, first, second, label, id=row.get("id").strip())


_READERS: dict[str, Callable[[_RoleRow, Layout, TaskConfig], Example | Answer]] = {
    "pair": _pair,
    "class": _class,
    "ranking": _ranking,
    "relation": _relation,
}


def _rows(layout: Layout, config: TaskConfig, log: ReadLog) -> Iterator[_RoleRow]:
    first = next((line for _, line in read_lines(config.path, config.encoding) if line.strip()), "")
    columns = layout.columns
    if first.lstrip().startswith(("{", "[")):
        inner = _INNER if "candidates" in columns else ()
        keys = {role: key for role, key in columns.items() if role not in inner}
        for row in read_objects(config.path, log, config.encoding):
            if layout.unlabelled and not str(row.value.get(columns["label"]) or "").strip():
                known = {role: key for role, key in keys.items() if role != "label"}
                yield _RoleRow(row.line, {r: row.value.get(k) for r, k in known.items()}, row.text)
                continue
            if missing := [key for key in keys.values() if key not in row.value]:
                log.reject(f"the key {missing[0]!r} is missing", row.line, row.text)
                continue
            yield _RoleRow(row.line, {r: row.value[key] for r, key in keys.items()}, row.text)
        return
    positions: dict[str, int] = {}
    numbered = all(column.startswith("#") for column in columns.values())
    n_cells = layout.positions if numbered and layout.quotes else 0
    log.opened(config.path)
    for line, cells, text in _cells(layout.quotes, config, log, find_delimiter(first)):
        if not positions:
            header = [] if numbered else [cell.strip() for cell in cells]
            positions = {
                role: column_position(c, header, config.path, line) for role, c in columns.items()
            }
            n_cells = n_cells or len(cells)
            if header or text == layout.header:
                continue
        log.read()
        if len(cells) != n_cells or len(cells) <= max(positions.values()):
            log.reject(f"{len(cells)} cells, expected {n_cells}", line, text)
        else:
            yield _RoleRow(line, {role: cells[k] for role, k in positions.items()}, text)


Row = tuple[int, list[str], str]
"""The first line of a row, its cells, and its text."""


def _cells(quotes: str, config: TaskConfig, log: ReadLog, delimiter: str) -> Iterator[Row]:
    """Yield rows of cells; in a TSV quotes are text, unless they enclose a whole cell."""
    lines = read_lines(config.path, config.encoding)
    if quotes == "csv" or (delimiter != "\t" and not quotes):
        yield from tolerant_csv(lines, log, "\t" if quotes else delimiter)
        return
    for number, line in lines:
        if line.strip():
            cells = line.split("\t")
            yield number, cells if quotes else [unquoted(cell) for cell in cells], line


def _read_table(config: TaskConfig, log: ReadLog) -> Iterator[Example]:
    return read_rows(Layout(columns=config.columns), config, log)


FORMAT = TaskFormat("", _read_table, options=frozenset({"columns"}))


@cache
def read_layout(path: Path) -> TaskFormat:
    """Read the layout of a data set of your own from a TOML file.

    Args:
        path: A file with the keys of ``data_sets.toml``.
    """
    return from_mapping(Layout, load_toml(path), f"{path.name}: ").format()


DATA_SETS = SimpleNamespace(
    **{
        name: from_mapping(Layout, values, f"{name}.").format()
        for name, values in tomllib.loads(DATA_SETS_FILE.read_text("utf-8")).items()
    }
)
"""The formats of published data sets, by name."""
