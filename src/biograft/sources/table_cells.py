"""The cells of a CSV or TSV: the delimiter found, quoted cells read, comments passed over."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from biograft.errors import FormatError
from biograft.sources.files import MAX_LINE_BYTES, read_lines
from biograft.sources.format import SourceConfig

_DELIMITERS = "\t,;|"
_QUOTE = '"'


def read_cells(config: SourceConfig) -> Iterator[tuple[int, list[str]]]:
    """Split lines into cells; quoted cells may run over several lines, except between tabs."""
    position, delimiter, started = 0, "", False

    def lines() -> Iterator[str]:
        nonlocal position, started
        for number, line in read_lines(config.path, config.encoding):
            position = number
            if not started and (line.startswith("#") or not line.strip()):
                continue
            started = True
            yield line + "\n"

    source = lines()
    first = next(source, None)
    if first is None:
        raise FormatError("holds no rows", path=config.path, remedy="check the file")
    delimiter, begin = find_delimiter(first), position

    def rejoined() -> Iterator[str]:
        yield first
        yield from source

    csv.field_size_limit(MAX_LINE_BYTES)
    by_tabs = delimiter == "\t"
    reader = csv.reader(
        rejoined(),
        delimiter=delimiter,
        quotechar=None if by_tabs else _QUOTE,
        quoting=csv.QUOTE_NONE if by_tabs else csv.QUOTE_MINIMAL,
        strict=True,
    )
    try:
        for cells in reader:
            yield begin, [unquoted(cell) for cell in cells] if by_tabs else cells
            begin = position + 1
    except csv.Error as error:
        raise FormatError(
            f"is not valid CSV ({error})",
            path=config.path,
            line=begin,
            remedy="mend the quotes or line ends in this row",
        ) from error


def find_delimiter(line: str) -> str:
    """The delimiter is the candidate that occurs most in the first row."""
    return max(_DELIMITERS, key=line.count)


def unquoted(cell: str) -> str:
    """Take off quotes as Excel and pandas put them in a TSV; other quote marks are text.

    >>> [unquoted(cell) for cell in ('"flu"', '5" plaque', '"a" or "b"')]
    ['flu', '5" plaque', '"a" or "b"']
    """
    if len(cell) < 2 or cell[0] != _QUOTE or cell[-1] != _QUOTE:
        return cell
    inner = cell[1:-1]
    if _QUOTE in inner.replace(_QUOTE * 2, ""):
        return cell
    return inner.replace(_QUOTE * 2, _QUOTE)
