"""Delimited files of any size (RRF, RF2, Athena) as tables: fast on valid lines, exact on invalid.

A :class:`DelimitedLayout` declares the columns of a file, and a :class:`Release` the files of a
vocabulary that is published as a folder. :func:`read_rows` reads blocks of rows, a
:class:`RowChecker` drops and counts those that are wrong or unwanted, and :func:`to_block` turns
the rest into records.

Polars parses blocks of lines. It silently fills short lines and drops surplus fields, so the number
of fields of each line of a block is checked first. An invalid block is parsed line by line, and its
invalid lines are rejected with their line numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TypeVar, cast

import polars as pl

from biograft.errors import FormatError
from biograft.kb.records import Record
from biograft.kb.sources.files import LineBlock, decode, is_empty, read_head, read_line_blocks
from biograft.kb.sources.format import Block, Probe, look_at
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
    wanted: tuple[str, ...]
    """The columns to read."""
    required: tuple[str, ...] = ()
    """The columns without which a row is rejected."""
    shapes: Mapping[str, str] = field(default_factory=dict)
    """Column -> pattern of its cells, by which a file without a header is recognised."""

    @property
    def n_separators(self) -> int:
        """The number of separators of a valid line."""
        return len(self.columns) - (0 if self.trailing else 1)

    def fits(self, lines: Sequence[str]) -> bool:
        """Whether the first line is the header, or all are rows of a layout without one.

        Args:
            lines: The first lines of a file.
        """
        rows = [line.split(self.separator) for line in lines]
        if self.header:
            return rows[:1] == [list(self.columns)]
        return bool(rows) and all(map(self._is_row, rows))

    def _is_row(self, cells: list[str]) -> bool:
        row = dict(zip(self.columns, cells, strict=False))
        return len(cells) == self.n_separators + 1 and all(
            re.fullmatch(shape, row[column]) for column, shape in self.shapes.items()
        )


def rrf(columns: str, wanted: str, required: str = "", **shapes: str) -> DelimitedLayout:
    """Return the layout of a file of UMLS or RxNorm.

    Args:
        columns: Names of the columns, separated by blanks.
        wanted: Those to read.
        required: Those without which a row is rejected.
        **shapes: Patterns of the cells of some columns.
    """
    return DelimitedLayout(
        columns=tuple(columns.split()),
        separator="|",
        trailing=True,
        wanted=tuple(wanted.split()),
        required=tuple(required.split()),
        shapes=shapes,
    )


def headed(columns: str, wanted: str) -> DelimitedLayout:
    """Return the layout of a tab-separated file with a header.

    Args:
        columns: Names of the columns, separated by blanks.
        wanted: Those to read.
    """
    return DelimitedLayout(
        columns=tuple(columns.split()),
        separator="\t",
        header=True,
        wanted=tuple(wanted.split()),
    )


@dataclass(frozen=True, kw_only=True)
class Release:
    """A vocabulary published as a folder of files, each of which may also be named alone."""

    layouts: Mapping[str, DelimitedLayout]
    """The files, in the order in which they are read."""
    main: str
    """The file that a folder must hold."""
    suffix: str = ""
    """The end of the names of the files."""
    places: tuple[str, ...] = ("*",)
    """Patterns of the paths in a folder."""
    remedy: str
    """The folder to name."""

    def recognise(self, probe: Probe) -> bool:
        """A folder that holds the main file, or lines in the layout of one of the files."""
        if probe.members:
            return self.main in self._find(probe.path)
        return bool(self._kind(probe))

    def files(self, path: Path, log: ReadLog) -> dict[str, Path]:
        """Find the files to read; an empty one beside the main file is noted.

        Args:
            path: The folder, or one file.
            log: Where it is noted.

        Raises:
            UnrecognisedError: The folder lacks the main file, or the file is none of a release.
        """
        probe = look_at(path)
        if probe.head:
            return {self._known_kind(probe): path}
        files = self._find(path)
        if self.main not in files:
            raise probe.unrecognised(f"holds no {self.main}{self.suffix}", self.remedy)
        read_head(files[self.main])  # which refuses an empty file
        for kind in [kind for kind in files if kind != self.main and is_empty(files[kind])]:
            log.note(f"{kind}{self.suffix} is empty")
            del files[kind]
        return files

    def _find(self, folder: Path) -> dict[str, Path]:
        """Find the files of a folder, plain or gzipped."""
        named: dict[str, Path] = {}
        for place in self.places:
            for path in sorted(folder.glob(place)):
                named.setdefault(path.name.upper().removesuffix(".GZ"), path)
        names = {kind: f"{kind}{self.suffix}".upper() for kind in self.layouts}
        return {kind: named[name] for kind, name in names.items() if name in named}

    def _kind(self, probe: Probe) -> str:
        lines = probe.lines(5)
        return next((kind for kind, layout in self.layouts.items() if layout.fits(lines)), "")

    def _known_kind(self, probe: Probe) -> str:
        """Return the kind of a file by its content, else by its name."""
        named = (kind for kind in self.layouts if probe.path.name.upper().startswith(kind))
        if kind := self._kind(probe) or next(named, ""):
            return kind
        raise probe.unrecognised(f"is none of {', '.join(self.layouts)}", self.remedy)


def read_rows(
    path: Path, log: ReadLog, layout: DelimitedLayout, encoding: str = "utf-8"
) -> Iterator[RowChecker]:
    """Read blocks of rows: the wanted columns as strings, and ``line``.

    Args:
        path: The file.
        log: Where rows are counted.
        layout: Columns and separator of the format.
        encoding: Encoding of the file.
    """
    log.opened(path)
    for lines, regular in _ahead(_checked_blocks(path, layout, encoding)):
        frame = _parse_whole(lines, path, layout) if regular else None
        if frame is None:
            frame = _parse_by_line(lines, path, log, layout)
        log.read(frame.height, lines.fraction)
        rows = RowChecker(frame.select("line", *layout.wanted), path, log, layout.separator)
        for column in layout.required:
            rows.reject_unless(rows.column(column) != "", f"{column} is empty")
        yield rows


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


def to_block(record: type[Record], frame: pl.DataFrame, **columns: str | pl.Expr) -> Block:
    """Return the rows of a table as records of one type.

    Args:
        record: Type of the records.
        frame: The rows, with their ``line``.
        **columns: Column or expression of each field; other fields have their defaults.
    """
    constants = {
        each.name: pl.lit(each.default) for each in fields(record) if each.name not in columns
    }
    return Block(record, frame.select(**constants | columns | {"line": "line"}))


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


def _parse_whole(lines: LineBlock, path: Path, layout: DelimitedLayout) -> pl.DataFrame | None:
    """Parse a block of valid lines; None if text follows a last separator."""
    frame = _to_frame(lines.data, lines, path, layout)
    if layout.trailing and (frame[_END_OF_LINE] != "").any():
        return None
    return frame.with_row_index("line", offset=lines.first)


def _parse_by_line(
    lines: LineBlock, path: Path, log: ReadLog, layout: DelimitedLayout
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
    frame = _to_frame(b"\n".join([*good, b""]), lines, path, layout)
    return frame.with_columns(pl.Series("line", line_numbers, dtype=pl.UInt32))


def _line_fault(line: bytes, layout: DelimitedLayout) -> str:
    separator = layout.separator.encode()
    if layout.trailing and not line.endswith(separator):
        return f"does not end in {layout.separator}"
    n = line.count(separator) + (0 if layout.trailing else 1)
    return "" if n == len(layout.columns) else f"{n} fields, expected {len(layout.columns)}"


def _to_frame(data: bytes, whole: LineBlock, path: Path, layout: DelimitedLayout) -> pl.DataFrame:
    """Parse valid lines: the wanted columns, and what follows a last separator."""
    columns, wanted = layout.columns, layout.wanted
    if layout.trailing:
        columns, wanted = (*columns, _END_OF_LINE), (*wanted, _END_OF_LINE)
    if not data:
        return pl.DataFrame(schema=dict.fromkeys(wanted, pl.String))
    try:
        frame = pl.read_csv(
            data,
            has_header=False,
            separator=layout.separator,
            quote_char=None,
            schema=dict.fromkeys(columns, pl.String),
            columns=[columns.index(column) for column in wanted],
            empty_string_is_null=False,
        )
    except pl.exceptions.ComputeError:
        decode(whole.data, path, whole.first, "utf-8")
        raise
    if columns[-1] in wanted:
        frame = frame.with_columns(pl.col(columns[-1]).str.strip_chars_end("\r"))
    return frame
