"""Tables: chosen columns of CSV, TSV, JSON lines, XLSX and Parquet, one row after the other."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

from biograft.errors import FormatError, InputError, MissingExtraError, nearest
from biograft.kb.names import whole_number
from biograft.kb.sources.files import ExpansionLimit, open_stored, open_zip, read_lines
from biograft.kb.sources.format import SourceConfig
from biograft.kb.sources.json_files import peek_object, read_objects
from biograft.kb.sources.log import ReadLog
from biograft.kb.sources.table import read_cells
from biograft.text.rich_text import packed_kind

XLSX, PARQUET = "xlsx", "parquet"
_PARQUET_MAGIC = b"PAR1"

Row = tuple[int, dict[str, str]]
"""The line or number of a row, and its cells by column."""


def binary_table(path: Path) -> str:
    """Return ``xlsx`` or ``parquet`` for a table that is no text, else nothing."""
    if packed_kind(path) == XLSX:
        return XLSX
    return PARQUET if path.is_file() and _starts_parquet(path) else ""


def _starts_parquet(path: Path) -> bool:
    with open_stored(path) as file:
        return bool(file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC)


def read_table(
    path: Path, columns: Sequence[str], log: ReadLog, *, sheet: str = ""
) -> Iterator[Row]:
    """Yield chosen columns of each row; the first of them must hold text.

    Columns are named as in the header, or by number as ``#1``. Text is UTF-8; wrong rows are
    counted in the log. ``sheet`` names a sheet of an XLSX file, which is the first by default.
    """
    kind = binary_table(path)
    if sheet and kind != XLSX:
        raise InputError("has no sheets", path=path, remedy="leave --sheet out")
    if kind == XLSX:
        yield from _by_header(_xlsx_rows(path, sheet), columns, path, log)
    elif kind == PARQUET:
        yield from _parquet_rows(path, columns, log)
    elif _is_json_lines(path):
        yield from _json_rows(path, columns, log)
    else:
        rows = read_cells(SourceConfig(path=path), quoted_tsv=True)
        yield from _by_header(rows, columns, path, log)


def _is_json_lines(path: Path) -> bool:
    first = next((line for _, line in read_lines(path) if line.strip()), "")
    return bool(peek_object(first)) or first.lstrip().startswith("{")


def _by_header(
    rows: Iterable[tuple[int, list[str]]], columns: Sequence[str], path: Path, log: ReadLog
) -> Iterator[Row]:
    """Pick columns by the first row, which is a header unless all are given by number."""
    log.opened(path)
    positions: dict[str, int] = {}
    n_cells = 0
    for line, cells in rows:
        if not positions:
            header = [cell.strip() for cell in cells]
            positions = {name: _position(name, header, path, line) for name in columns}
            n_cells = len(cells)
            if not all(name.startswith("#") for name in columns):
                continue
        log.read()
        if len(cells) != n_cells:
            log.reject(f"{len(cells)} cells, expected {n_cells}", line, "\t".join(cells), path=path)
            continue
        yield line, {name: cells[position] for name, position in positions.items()}


def _position(name: str, header: Sequence[str], path: Path, line: int | None) -> int:
    """Return the position of a column by its name in the header, or by its number (``#1``)."""
    number = whole_number(name[1:]) if name.startswith("#") else None
    if number and number <= len(header):
        return number - 1
    if header.count(name) != 1:
        raise FormatError(
            f"column {name!r} occurs {header.count(name)} times in the header",
            path=path,
            line=line,
            text=",".join(header),
            remedy=nearest(name, header),
        )
    return header.index(name)


def _json_rows(path: Path, columns: Sequence[str], log: ReadLog) -> Iterator[Row]:
    """Read the keys of JSON lines; a key that no row has is refused."""
    seen: dict[str, None] = {}
    for row in read_objects(path, log):
        seen.update(dict.fromkeys(row.value))
        cells = {name: row.value.get(name) for name in columns}
        if not isinstance(cells[columns[0]], str):
            log.reject(f"the key {columns[0]!r} holds no text", row.line, row.text)
            continue
        yield row.line, {name: _text(value) for name, value in cells.items()}
    missing = [name for name in columns if name not in seen]
    if seen and missing:
        raise FormatError(
            f"no row has the key {missing[0]!r}", path=path, remedy=nearest(missing[0], seen)
        )


def _xlsx_rows(path: Path, sheet: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a sheet that are not empty, as wide as the first of them."""
    try:
        import openpyxl
    except ImportError as error:
        raise MissingExtraError("tables", "reading XLSX") from error
    with open_zip(path) as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
        ExpansionLimit(path).check(path.stat().st_size, unpacked)
    width = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of styles and validation, which are not read
        try:
            book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        except Exception as error:  # openpyxl lets any error of a damaged file through
            raise _damaged(path, error) from error
        try:
            if sheet and sheet not in book.sheetnames:
                raise FormatError(
                    f"has no sheet {sheet!r}", path=path, remedy=nearest(sheet, book.sheetnames)
                )
            chosen = book[sheet] if sheet else book.worksheets[0]
            chosen.reset_dimensions()  # those that a file states may be wrong
            for number, values in _undamaged(chosen.iter_rows(values_only=True), path):
                cells = [_text(value) for value in values]
                while cells and not cells[-1] and len(cells) > width:
                    cells.pop()
                if any(cells):
                    width = width or len(cells)
                    yield number, cells + [""] * (width - len(cells))
        finally:
            book.close()


def _undamaged(rows: Iterator[Any], path: Path) -> Iterator[tuple[int, Any]]:
    number = 0
    while True:
        number += 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except Exception as error:  # openpyxl lets any error of a damaged file through
            raise _damaged(path, error, number) from error
        yield number, row


def _damaged(path: Path, error: Exception, line: int | None = None) -> FormatError:
    problem = f"cannot be read as a table ({type(error).__name__}: {' '.join(str(error).split())})"
    return FormatError(problem, path=path, line=line, remedy="save it again, or as .csv")


def _parquet_rows(path: Path, columns: Sequence[str], log: ReadLog) -> Iterator[Row]:
    """Read columns of a Parquet file, a batch of rows at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    log.opened(path)
    number = 0
    with open_stored(path) as raw:
        try:
            file = pq.ParquetFile(raw)
            header = file.schema_arrow.names
            names = {name: header[_position(name, header, path, None)] for name in columns}
            for batch in file.iter_batches(columns=list(dict.fromkeys(names.values()))):
                for values in batch.to_pylist():
                    number += 1
                    log.read()
                    if any(isinstance(value, list | dict) for value in values.values()):
                        log.reject("a list, expected one value", number, str(values), path=path)
                        continue
                    yield number, {name: _text(values[key]) for name, key in names.items()}
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _damaged(path, error, number or None) from error


def _text(value: object) -> str:
    """Return the value of a cell as a spreadsheet shows it, without its number format.

    >>> _text(None), _text(7.0), _text(True)
    ('', '7', 'true')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, datetime) and not (value.hour or value.minute or value.second):
        return value.date().isoformat()
    if isinstance(value, date):  # a datetime is one, too
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value)
