"""Task tables with a column mapping: CSV, TSV or JSON lines.

The mapped roles determine the kind: ``first, second [, label, id]`` are pairs; ``text, label
[, context, id]`` are classes, with ``labels`` (several in a cell, separated by ``|``, or a list)
instead of ``label`` for multi-label tasks; ``query, answer, relevance [, id]`` are rankings,
grouped by question. A column is named by its header (in JSON: its key), or by its position: ``#1``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from biograft.errors import ConfigError, FormatError, nearest
from biograft.kb.names import whole_number
from biograft.kb.sources.files import read_lines
from biograft.kb.sources.json_files import read_objects
from biograft.kb.sources.table import find_delimiter, unquoted
from biograft.text.tasks.records import Answer, ClassExample, Example, PairExample
from biograft.text.tasks.registry import TaskConfig, TaskFormat
from biograft.text.tasks.rows import JudgedAnswer, group_by_question, read_csv, relevance

if TYPE_CHECKING:
    from biograft.kb.sources.log import ReadLog

SEPARATOR = "|"
NEEDED = {
    "pair": ("first", "second"),
    "class": ("text",),
    "ranking": ("query", "answer", "relevance"),
}
OPTIONAL = {
    "pair": ("label", "id"),
    "class": ("label", "labels", "context", "id"),
    "ranking": ("id",),
}


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


def read(config: TaskConfig, log: ReadLog) -> Iterator[Example]:
    """Read examples in the order of the rows."""
    kind = kind_of_columns(config.columns)
    rows = _rows(config, log)
    if kind == "ranking":
        return iter(group_by_question(_judged_answers(rows, log)))
    return _classes(rows, log) if kind == "class" else _paired(rows, log)


def kind_of_columns(columns: Mapping[str, str]) -> str:
    """Return the kind of example that the mapped roles make."""
    known = sorted({role for roles in (*NEEDED.values(), *OPTIONAL.values()) for role in roles})
    for role in columns:
        if role not in known:
            raise ConfigError(f"columns: no role is called {role!r}; {nearest(role, known)}")
    for kind, needed in NEEDED.items():
        if set(needed) <= set(columns):
            if stray := set(columns) - {*needed, *OPTIONAL[kind]}:
                raise ConfigError(f"columns: a {kind} has no {', '.join(sorted(stray))}")
            if {"label", "labels"} <= set(columns):
                raise ConfigError("columns: label is one, labels are several; map only one of both")
            return kind
    raise ConfigError(
        "columns: map first and second (pairs), text and label (classes), or query, answer and "
        "relevance (rankings)"
    )


def _paired(rows: Iterator[_RoleRow], log: ReadLog) -> Iterator[PairExample]:
    for row in rows:
        if empty := row.empty("first", "second", *({"label"} & set(row.cells))):
            log.reject(f"{empty} is empty", row.line, row.text)
            continue
        yield PairExample(
            row.get("first"), row.get("second"), row.get("label").strip(), row.get("id")
        )


def _classes(rows: Iterator[_RoleRow], log: ReadLog) -> Iterator[ClassExample]:
    for row in rows:
        if empty := row.empty("text", *({"label"} & set(row.cells))):
            log.reject(f"{empty} is empty", row.line, row.text)
            continue
        labels = _several(row.cells["labels"]) if "labels" in row.cells else (row.get("label"),)
        nonempty = tuple(label.strip() for label in labels if label.strip())
        multi = "labels" in row.cells
        yield ClassExample(row.get("text"), nonempty, row.get("context"), multi, row.get("id"))


def _several(value: Any) -> list[str]:
    return list(map(str, value)) if isinstance(value, list) else str(value or "").split(SEPARATOR)


def _judged_answers(rows: Iterator[_RoleRow], log: ReadLog) -> Iterator[JudgedAnswer]:
    for row in rows:
        grade = relevance(row.get("relevance"))
        if grade is None:
            log.reject("relevance is not a whole number such as 0 or 1", row.line, row.text)
        elif empty := row.empty("query", "answer"):
            log.reject(f"{empty} is empty", row.line, row.text)
        else:
            yield row.get("id"), row.get("query"), Answer(row.get("answer"), grade)


def _rows(config: TaskConfig, log: ReadLog) -> Iterator[_RoleRow]:
    first = next((line for _, line in read_lines(config.path, config.encoding) if line.strip()), "")
    if first.lstrip().startswith("{"):
        yield from _json_rows(config, log)
        return
    positions: dict[str, int] = {}
    n_cells = 0
    numbered = all(column.startswith("#") for column in config.columns.values())
    for line, cells, text in _cells(config, log, find_delimiter(first)):
        if not positions:
            header = [] if numbered else [cell.strip() for cell in cells]
            positions = {r: _position(c, header, config, line) for r, c in config.columns.items()}
            n_cells = len(cells)
            if header:
                continue
        log.read()
        if len(cells) != n_cells or len(cells) <= max(positions.values()):
            log.reject(f"{len(cells)} cells, expected {n_cells}", line, text)
        else:
            yield _RoleRow(line, {role: cells[k] for role, k in positions.items()}, text)


def _cells(
    config: TaskConfig, log: ReadLog, delimiter: str
) -> Iterator[tuple[int, list[str], str]]:
    """Yield rows of cells; in a TSV quotes are text, unless they enclose a whole cell."""
    log.opened(config.path)
    if delimiter != "\t":
        for row in read_csv(config, log, delimiter):
            yield row.line, row.cells, row.text
        return
    for number, line in read_lines(config.path, config.encoding):
        if line.strip():
            yield number, [unquoted(cell) for cell in line.split("\t")], line


def _json_rows(config: TaskConfig, log: ReadLog) -> Iterator[_RoleRow]:
    for row in read_objects(config.path, log, config.encoding):
        missing = [key for key in config.columns.values() if key not in row.value]
        if missing:
            log.reject(f"the key {missing[0]!r} is missing", row.line, row.text)
            continue
        yield _RoleRow(row.line, {r: row.value[key] for r, key in config.columns.items()}, row.text)


def _position(column: str, header: list[str], config: TaskConfig, line: int) -> int:
    if not header:
        number = whole_number(column[1:])
        if not number:
            raise ConfigError(f"columns: {column!r} is not a column number such as '#1'")
        return number - 1
    if header.count(column) != 1:
        raise FormatError(
            f"column {column!r} occurs {header.count(column)} times in the header",
            path=config.path,
            line=line,
            text=",".join(header),
            remedy=nearest(column, header),
        )
    return header.index(column)


FORMAT = TaskFormat("", read, options=frozenset({"columns"}))
