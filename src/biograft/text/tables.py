"""Tables: chosen columns of CSV, TSV, JSON lines, workbooks and Parquet, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING

from biograft.errors import FormatError, InputError, nearest
from biograft.kb.sources.files import ExpansionLimit, open_stored, read_lines
from biograft.kb.sources.format import SourceConfig
from biograft.kb.sources.json_files import peek_object, read_objects
from biograft.kb.sources.log import ReadLog
from biograft.kb.sources.table import column_position, find_header, fit, read_cells
from biograft.kb.sources.workbooks import cell_text, is_workbook, read_sheet

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyarrow.parquet import ParquetFile

WORKBOOK, PARQUET = "workbook", "parquet"
_PARQUET_MAGIC = b"PAR1"

Row = tuple[int, dict[str, str]]
"""The line or number of a row, and its cells by column."""


def binary_table(path: Path) -> str:
    """Return ``workbook`` or ``parquet`` for a table that is no text, else nothing."""
    if is_workbook(path):
        return WORKBOOK
    return PARQUET if path.is_file() and _starts_parquet(path) else ""


def _starts_parquet(path: Path) -> bool:
    with open_stored(path) as file:
        return bool(file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC)


def read_table(
    path: Path, columns: Sequence[str], log: ReadLog, *, sheet: str = ""
) -> Iterator[Row]:
    """Yield chosen columns of each row; the first of them must hold text.

    Text is UTF-8.

    Args:
        path: CSV, TSV, JSON lines, a workbook or Parquet.
        columns: Names in the header, or numbers such as ``#1``.
        log: Counts rows read, and rejected by reason.
        sheet: Sheet of a workbook; default: the first with a table.
    """
    kind = binary_table(path)
    if sheet and kind != WORKBOOK:
        raise InputError("has no sheets", path=path, remedy="leave --sheet out")
    if kind == WORKBOOK:
        yield from _by_header(read_sheet(path, sheet), columns, path, log, padded=True)
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
    rows: Iterator[tuple[int, list[str]]],
    columns: Sequence[str],
    path: Path,
    log: ReadLog,
    *,
    padded: bool = False,
) -> Iterator[Row]:
    """Pick columns by the header; there is none if all are given by number."""
    log.opened(path)
    named = [name for name in columns if not name.startswith("#")]
    start, header, below = find_header(
        rows, path, lambda cells: all(cells.count(name) == 1 for name in named)
    )
    positions = {name: column_position(name, header, path, start) for name in columns}
    for line, cells in below if named else chain([(start, header)], below):
        row = fit(cells, len(header), padded=padded)
        if not any(row) or (row == header and named):
            continue
        log.read()
        if len(row) != len(header):
            reason = f"{len(row)} cells, expected {len(header)}"
            log.reject(reason, line, "\t".join(cells), path=path)
            continue
        yield line, {name: row[position] for name, position in positions.items()}


def _json_rows(path: Path, columns: Sequence[str], log: ReadLog) -> Iterator[Row]:
    """Read the keys of JSON lines; a key that no row has is refused."""
    seen: dict[str, None] = {}
    for row in read_objects(path, log):
        seen.update(dict.fromkeys(row.value))
        cells = {name: row.value.get(name) for name in columns}
        if not isinstance(cells[columns[0]], str):
            log.reject(f"the key {columns[0]!r} holds no text", row.line, row.text)
            continue
        yield row.line, {name: cell_text(value) for name, value in cells.items()}
    missing = [name for name in columns if name not in seen]
    if seen and missing:
        raise FormatError(
            f"no row has the key {missing[0]!r}", path=path, remedy=nearest(missing[0], seen)
        )


def _damaged(path: Path, error: Exception, line: int | None = None) -> FormatError:
    problem = f"cannot be read as a table ({type(error).__name__}: {' '.join(str(error).split())})"
    return FormatError(problem, path=path, line=line, remedy="save it again, or as .csv")


_BATCH_ROWS, _BATCH_BYTES = 1024, 64 << 20
"""Rows of Parquet that are decoded at once, and the most bytes of their texts."""


def _parquet_rows(path: Path, columns: Sequence[str], log: ReadLog) -> Iterator[Row]:
    """Read columns of a Parquet file, a batch of rows at a time.

    A text that many rows have is stored once: its size, not the number of rows, bounds a batch.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    log.opened(path)
    number = 0
    with open_stored(path) as raw:
        try:
            file = pq.ParquetFile(raw)
            header = file.schema_arrow.names
            names = {name: header[column_position(name, header, path, None)] for name in columns}
            wanted = list(dict.fromkeys(names.values()))
            check_expansion(path, file, wanted)
            kinds = {name: file.schema_arrow.field(name).type for name in wanted}
            if nested := [name for name, kind in kinds.items() if pa.types.is_nested(kind)]:
                raise FormatError(f"the column {nested[0]!r} holds lists", path=path)
            texts = [name for name in wanted if str(kinds[name]).endswith(("string", "binary"))]
            file = pq.ParquetFile(raw, read_dictionary=texts)
            for batch in file.iter_batches(_BATCH_ROWS, columns=wanted):
                for rows in _bounded(batch):
                    for values in rows.to_pylist():
                        number += 1
                        log.read()
                        yield number, {name: cell_text(values[key]) for name, key in names.items()}
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _damaged(path, error, number or None) from error


def check_expansion(path: Path, file: ParquetFile, columns: Sequence[str] = ()) -> None:
    """Refuse a Parquet file some column of which becomes too large when unpacked.

    Args:
        path: The file.
        file: The same, opened.
        columns: Columns that will be read; empty: all.
    """
    limit, packed = ExpansionLimit(path), path.stat().st_size
    with path.open("rb") as raw:
        for group in map(file.metadata.row_group, range(file.metadata.num_row_groups)):
            for chunk in map(group.column, range(group.num_columns)):
                if not columns or chunk.path_in_schema.partition(".")[0] in columns:
                    start = chunk.data_page_offset
                    start = min(chunk.dictionary_page_offset or start, start)
                    end = min(start + chunk.total_compressed_size, packed)
                    limit.check(packed, sum(_page_sizes(raw, start, end)))


def _page_sizes(raw: IO[bytes], start: int, end: int) -> Iterator[int]:
    """Yield what the pages of a column unpack to, as they say themselves: the footer may lie."""
    while start < end:
        raw.seek(start)
        page = _read_header(raw)
        yield page.get(2, 0)
        start = raw.tell() + page.get(3, 0)


def _read_header(raw: IO[bytes], depth: int = 3) -> dict[int, int]:
    """Read the numbers of a structure in Thrift's compact protocol, by their fields."""
    found: dict[int, int] = {}
    field = 0
    while head := int.from_bytes(raw.read(1)):
        field = field + (head >> 4) if head >> 4 else _read_number(raw) >> 1
        kind = head & 15
        if kind in (4, 5, 6):
            found[field] = _read_number(raw) >> 1
        elif kind == 8:
            raw.seek(min(_read_number(raw), 1 << 40), 1)
        elif kind == 12 and depth:
            _read_header(raw, depth - 1)
        elif kind > 2:
            raise ValueError("a page has no header")
    return found


def _read_number(raw: IO[bytes]) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = int.from_bytes(raw.read(1))
        value |= (byte & 127) << shift
        if byte < 128:
            break
    return value


def _bounded(batch: RecordBatch) -> Iterator[RecordBatch]:
    """Divide rows so that the decoded texts of each part take bounded memory."""
    import pyarrow as pa
    import pyarrow.compute as pc

    longest = 0
    for column in batch.columns:
        if isinstance(column, pa.DictionaryArray) and len(column.dictionary):
            longest += pc.max(pc.binary_length(column.dictionary)).as_py() or 0
    n_rows = min(max(_BATCH_BYTES // max(longest, 1), 1), _BATCH_ROWS)
    for start in range(0, batch.num_rows, n_rows):
        columns = [
            each.dictionary_decode() if isinstance(each, pa.DictionaryArray) else each
            for each in batch.slice(start, n_rows).columns
        ]
        yield pa.RecordBatch.from_arrays(columns, batch.schema.names)
