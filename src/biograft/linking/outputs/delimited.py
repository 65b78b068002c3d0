"""CSV and TSV: one row a finding, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from biograft.linking.outputs.findings import COLUMNS, finding_rows
from biograft.linking.outputs.output import Documents, Output, OutputRun

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A cell that begins so is a formula, or a command, to a spreadsheet."""
SEPARATOR = "|"
"""Between the items of a list in a cell."""


def neutral(text: str) -> str:
    """Return a cell that no spreadsheet runs as a formula: one that begins like it is quoted.

    A text that looks like such a cell is quoted, too, so that ``plain`` gives back every text.

    >>> neutral("=1+1"), neutral("'=1+1"), neutral("fever")
    ("'=1+1", "''=1+1", 'fever')
    """
    return f"'{text}" if text.lstrip("'").startswith(_FORMULA) else text


def plain(cell: str) -> str:
    """Return the text of a cell that ``neutral`` made.

    >>> plain("'=1+1"), plain("=1+1"), plain("'fever'")
    ('=1+1', '=1+1', "'fever'")
    """
    quoted = cell.startswith("'") and cell.lstrip("'").startswith(_FORMULA)
    return cell[1:] if quoted else cell


def cut(text: str, length: int) -> str:
    """Return the start of a text that has no more characters than a column, its quote included."""
    start = text[:length]
    return start if neutral(start) == start else start[: length - 1]


def cell(value: Any) -> str:
    """Return a value as text: lists joined, true and false in lower case, nothing if there is none.

    >>> cell(["T047", "T191"]), cell(True), cell(-0.5), cell(None)
    ('T047|T191', 'true', '-0.5', '')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return neutral(SEPARATOR.join(value))
    return neutral(value) if isinstance(value, str) else str(value)


def delimited_rows(rows: Iterable[Sequence[Any]], delimiter: str = ",") -> str:
    """Return rows as lines; cells with quotes, delimiters or line ends are quoted."""
    return "".join(delimited_line([cell(value) for value in row], delimiter) for row in rows)


def delimited_line(cells: Sequence[str], delimiter: str) -> str:
    """Return a line; the writer quotes both characters of its own line end, which is replaced."""
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\r\n").writerow(cells)
    return text.getvalue()[:-2] + "\n"


def _output(delimiter: str, media_type: str, ending: str) -> Output:
    def chunks(documents: Documents, run: OutputRun) -> Iterator[str]:
        yield delimited_rows([list(COLUMNS)], delimiter)
        for rows in finding_rows(documents, run):
            yield delimited_rows(([row[column] for column in COLUMNS] for row in rows), delimiter)

    return Output(chunks=chunks, media_type=media_type, endings=(ending,))


CSV = _output(",", "text/csv; charset=utf-8", ".csv")
TSV = _output("\t", "text/tab-separated-values; charset=utf-8", ".tsv")
