"""Tables that ``tables.toml`` declares: which values of a result stand in which cell, and how.

A cell is text with places in braces: ``{lexical.build_seconds:.1f} s``. A place is a path into the
part of the result that the row is about, else into the whole; numbers and further paths may follow
it with ``*``, ``/`` and ``+``, computed from left to right: ``{n_rows / ours.seconds / 1e3:,.0f}``.
A cell may have several texts, of which the first counts whose values exist.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from biograft.config import from_mapping, load_toml
from biograft_lab.replication.tables import markdown

FILE = Path(__file__).parent / "tables.toml"
Cell = str | tuple[str, ...]
_PLACE = re.compile(r"\{([^{}:]+)(?::([^{}]*))?\}")
_SIGN = re.compile(r" ([*/+]) ")
_OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "*": operator.mul,
    "/": operator.truediv,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTable:
    """A table of a result.

    It has a row of ``cells`` for each part named in ``of`` (``names.*``: all parts of ``names``),
    with its title, or the given ``rows``. With ``columns`` the cells of ``rows`` are repeated for
    each part there, under its ``column`` head. Parts without ``needs`` are left out. ``missing``
    stands for what a result does not have.
    """

    head: tuple[str, ...]
    of: Mapping[str, str] = field(default_factory=dict)
    cells: tuple[Cell, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    columns: str = ""
    column: str = "{key}"
    needs: str = ""
    missing: str = ""
    empty: str = ""

    def write(self, result: Mapping[str, Any]) -> str:
        """Return the table in Markdown."""
        if self.columns:
            parts = [part for part, _ in _parts(result, {self.columns: ""})]
            head = [*self.head, *(self._cell(self.column, part, result) for part in parts)]
            rows = [
                [str(row[0]), *(self._cell(row[1], part, result) for part in parts)]
                for row in self.rows
            ]
            return markdown(head, rows)
        rows = [[self._cell(cell, {}, result) for cell in row] for row in self.rows]
        rows += [
            [self._cell(cell, {**part, "title": title}, result) for cell in self.cells]
            for part, title in _parts(result, self.of)
            if not self.needs or _exists(self.needs, part)
        ]
        return markdown(self.head, rows) if rows else self.empty

    def _cell(self, cell: Cell, part: Mapping[str, Any], result: Mapping[str, Any]) -> str:
        for text in (cell,) if isinstance(cell, str) else cell:
            try:
                return _PLACE.sub(lambda m: format(_compute(m[1], part, result), m[2] or ""), text)
            except (LookupError, TypeError, ValueError, ZeroDivisionError):
                continue
        return self.missing


@cache
def declared_tables() -> Mapping[str, DeclaredTable]:
    """Return the tables by the name of their mark."""
    given = load_toml(FILE)
    return {name: from_mapping(DeclaredTable, of, f"{name}: ") for name, of in given.items()}


def _parts(
    result: Mapping[str, Any], of: Mapping[str, str]
) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Return the parts of a result with their titles; a part that is not there has no values."""
    for path, title in of.items():
        if path.endswith(".*"):
            parts = _walk(result, path[:-2])
            for key in parts if isinstance(parts, Mapping) else range(len(parts)):
                yield {**parts[key], "key": key}, title
        else:
            yield _walk(result, path) if _exists(path, result) else {}, title


def _exists(path: str, part: Mapping[str, Any]) -> bool:
    try:
        return _walk(part, path) is not None
    except LookupError:
        return False


def _walk(part: Any, path: str) -> Any:
    for key in path.split("."):
        part = part[int(key)] if isinstance(part, Sequence) else part[key]
    return part


def _compute(place: str, part: Mapping[str, Any], result: Mapping[str, Any]) -> Any:
    first, *others = _SIGN.split(place)
    value = _value(first, part, result)
    for sign, other in zip(others[::2], others[1::2], strict=True):
        value = _OPERATIONS[sign](value, _value(other, part, result))
    return value


def _value(path: str, part: Mapping[str, Any], result: Mapping[str, Any]) -> Any:
    try:
        return float(path)
    except ValueError:
        found = _walk(part if _exists(path, part) else result, path)
    if found is None or isinstance(found, Mapping):
        raise LookupError(path)
    return int(found) if isinstance(found, str) and found.isdecimal() else found
