"""Delimited files of any size (RRF, RF2) as tables: fast on valid lines, exact on invalid ones.

Polars parses blocks of lines. It silently fills short lines and drops surplus fields, so the number
of fields of each line of a block is checked first. An invalid block is parsed line by line, and its
invalid lines are rejected with their line numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar, cast

import polars as pl

from biograft.errors import FormatError
from biograft.kb.sources.files import LineBlock, decode, read_line_blocks
from biograft.kb.sources.log import KEPT_EXAMPLES, ReadLog

T = TypeVar("T")
_END_OF_LINE = "end of line"


@dataclass(frozen=True, kw_only=True)
class DelimitedLayout:
    """The columns of a delimited format without quoting."""

    columns: tuple[str, ...]
    separator: str
    trailing: bool = False
    """Whether a separator also ends the line (RRF)."""
    header: bool = False
    """Whether the first line names the columns."""

    @property
    def n_separators(self) -> int:
        """The number of separators of a valid line."""
        return len(self.columns) - (0 if self.trailing else 1)


def read_rows(
    path: Path,
    log: ReadLog,
    layout: DelimitedLayout,
    wanted: Sequence[str],
    encoding: str = "utf-8",
) -> Iterator[pl.DataFrame]:
    """Read blocks of rows: the wanted columns as strings, and ``line``.

    Args:
        path: The file.
        log: Where rows are counted.
        layout: Columns and separator of the format.
        wanted: Columns to return.
        encoding: Encoding of the file.
    """
    log.opened(path)
    for lines, regular in _ahead(_checked_blocks(path, layout, encoding)):
        frame = _parse_whole(lines, path, layout, wanted) if regular else None
        if frame is None:
            frame = _parse_by_line(lines, path, log, layout, wanted)
        log.read(frame.height, lines.fraction)
        yield frame


class RowChecker:
    """A block of rows; each check drops and counts the rows that fail.

    Args:
        frame: The rows, with their ``line``.
        path: The file.
        log: Where rows are counted.
        separator: Separator of the cells in examples.
    """

    def __init__(self, frame: pl.DataFrame, path: Path, log: ReadLog, separator: str) -> None:
        self.frame = frame
        self.path, self._log, self._separator = path, log, separator

    def column(self, name: str) -> pl.Series:
        """Return one column.

        Args:
            name: Its name.
        """
        return self.frame[name]

    def doubt(self, wrong: pl.Series, reason: str) -> None:
        """Count wrong rows as doubtful, and keep them.

        Args:
            wrong: Whether each row is wrong.
            reason: Why.
        """
        self._log_rows(wrong, reason, self._log.doubt)

    def reject_unless(self, right: pl.Series, reason: str) -> None:
        """Count wrong rows as rejected, and drop them.

        Args:
            right: Whether each row is right.
            reason: Why others are wrong.
        """
        if not right.all():
            self._log_rows(~right, reason, self._log.reject)
            self.frame = self.frame.filter(right)

    def filter_unless(self, wanted: pl.Series, reason: str) -> None:
        """Count unwanted rows as filtered, and drop them.

        Args:
            wanted: Whether each row is kept.
            reason: Why others are dropped.
        """
        if not wanted.all():
            rows = self.frame.filter(wanted)
            self._log.filter(reason, self.frame.height - rows.height)
            self.frame = rows

    def filter_among(self, name: str, wanted: Sequence[str], reason: str) -> None:
        """Drop the rows whose value in a column is none of those wanted; none: all are.

        Args:
            name: The column.
            wanted: The values; none: all.
            reason: Why others are dropped.
        """
        if wanted:
            self.filter_unless(self.frame[name].is_in(wanted), reason)

    def _log_rows(self, wrong: pl.Series, reason: str, log_row: Callable[..., None]) -> None:
        """Log rows, with the first as examples."""
        n = int(wrong.sum())
        if not n:
            return
        examples = self.frame.filter(wrong).head(KEPT_EXAMPLES)
        for row in examples.iter_rows(named=True):
            text = self._separator.join(str(value) for name, value in row.items() if name != "line")
            log_row(reason, row["line"], text, path=self.path)
        if n > examples.height:
            log_row(reason, path=self.path, n=n - examples.height)


def ids_lost(before: pl.Series, after: pl.Series) -> pl.Series:
    """Return the distinct ids of a block without a row left after a filter.

    Args:
        before: Ids of a block.
        after: Those that a filter kept.
    """
    ids = before.unique()
    return ids.filter(~ids.is_in(after.implode()))


def _ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield the items of an iterator while the next one is made in another thread."""
    end = object()
    pool = ThreadPoolExecutor(1)
    try:
        following = pool.submit(next, items, end)
        while (item := following.result()) is not end:
            following = pool.submit(next, items, end)
            yield cast("T", item)
    finally:
        # a consumer that stops early does not wait: the thread ends after its current item
        pool.shutdown(wait=False, cancel_futures=True)


def _checked_blocks(
    path: Path, layout: DelimitedLayout, encoding: str
) -> Iterator[tuple[LineBlock, bool]]:
    """Read blocks of lines, each with whether all its lines are valid."""
    marks = {ord("\n"), *layout.separator.encode()}
    others = bytes(set(range(256)) - marks)
    line_marks = (layout.separator * layout.n_separators + "\n").encode()
    for block in read_line_blocks(path):
        data = block.data
        if encoding.lower() not in ("utf-8", "utf8", "ascii"):
            data = decode(data, path, block.first, encoding).encode()
        if not data.endswith(b"\n"):
            data += b"\n"
        lines = replace(block, data=data)
        if layout.header and lines.first == 1:
            lines = _check_header(lines, path, layout)
        if lines.data:
            # every line has the right number of separators: only those are compared
            found = lines.data.translate(None, others)
            yield lines, found == line_marks * (len(found) // len(line_marks))


def _check_header(lines: LineBlock, path: Path, layout: DelimitedLayout) -> LineBlock:
    end = lines.data.index(b"\n") + 1
    header = lines.data[:end].decode("utf-8", errors="replace").rstrip("\r\n")
    columns = header.split(layout.separator)
    if columns != list(layout.columns):
        missing = [column for column in layout.columns if column not in columns]
        if missing:
            problem = f"column {missing[0]!r} is missing"
        elif len(columns) > len(layout.columns):
            problem = "there are too many columns"
        else:
            problem = "the columns are in another order"
        raise FormatError(
            problem,
            path=path,
            line=1,
            text=header,
            remedy=f"expected {', '.join(layout.columns)}",
        )
    return replace(lines, data=lines.data[end:], first=lines.first + 1)


def _parse_whole(
    lines: LineBlock, path: Path, layout: DelimitedLayout, wanted: Sequence[str]
) -> pl.DataFrame | None:
    """Parse a block of valid lines; None if text follows a last separator."""
    columns = [*wanted, _END_OF_LINE] if layout.trailing else wanted
    frame = _to_frame(lines.data, lines, path, layout, columns)
    if layout.trailing and not frame[_END_OF_LINE].is_in(["", "\r"]).all():
        return None
    return frame.select(*wanted).with_row_index("line", offset=lines.first)


def _parse_by_line(
    lines: LineBlock, path: Path, log: ReadLog, layout: DelimitedLayout, wanted: Sequence[str]
) -> pl.DataFrame:
    """Parse the valid lines of a block and reject the others with their line numbers."""
    good: list[bytes] = []
    line_numbers: list[int] = []
    for number, line in enumerate(lines.data.split(b"\n"), lines.first):
        if not line.strip():
            continue
        reason = _line_fault(line.rstrip(b"\r"), layout)
        if not reason:
            good.append(line)
            line_numbers.append(number)
        else:
            log.read()
            log.reject(reason, number, line.decode("utf-8", errors="replace"), path=path)
    data = b"\n".join([*good, b""])
    frame = _to_frame(data, lines, path, layout, wanted)
    numbers = pl.Series("line", line_numbers, dtype=pl.UInt32)
    return frame.with_columns(numbers)


def _line_fault(line: bytes, layout: DelimitedLayout) -> str:
    separator = layout.separator.encode()
    if layout.trailing and not line.endswith(separator):
        return f"does not end in {layout.separator}"
    n = line.count(separator) + (0 if layout.trailing else 1)
    return "" if n == len(layout.columns) else f"{n} fields, expected {len(layout.columns)}"


def _to_frame(
    data: bytes, whole: LineBlock, path: Path, layout: DelimitedLayout, wanted: Sequence[str]
) -> pl.DataFrame:
    names = [*layout.columns, *([_END_OF_LINE] if layout.trailing else [])]
    if not data:
        return pl.DataFrame(schema=dict.fromkeys(wanted, pl.String))
    try:
        frame = pl.read_csv(
            data,
            has_header=False,
            separator=layout.separator,
            quote_char=None,
            schema=dict.fromkeys(names, pl.String),
            columns=[names.index(column) for column in wanted],
            empty_string_is_null=False,
        )
    except pl.exceptions.ComputeError:
        decode(whole.data, path, whole.first, "utf-8")
        raise
    if layout.columns[-1] in wanted and not layout.trailing:
        frame = frame.with_columns(pl.col(layout.columns[-1]).str.strip_chars_end("\r"))
    return frame.select(*wanted)
