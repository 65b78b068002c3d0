"""Rows of delimited task files, line by line, so that a broken row spoils no other."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from biograft.sources.files import MAX_LINE_BYTES, read_lines

if TYPE_CHECKING:
    from biograft.corpus.tasks.format import TaskConfig
    from biograft.sources.log import ReadLog

QUOTE = '"'
MOST_LINES = 200
"""A quoted cell that runs over more lines than these is taken for a quote without end."""

Numbered = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of a row, the line it begins in, and its text."""

    line: int
    cells: list[str]
    text: str


def read_tabbed(
    config: TaskConfig, log: ReadLog, n_cells: int, form: str, *, quoted: bool = False
) -> Iterator[Row]:
    """Read rows of cells with tabs between; those of another width are rejected.

    ``quoted`` cells are as in CSV, but do not run over several lines.
    """
    log.opened(config.path)
    for number, line in read_lines(config.path, config.encoding):
        if not line.strip():
            continue
        log.read()
        cells = parse_csv(line, "\t") if quoted and QUOTE in line else line.split("\t")
        if cells is None:
            log.reject("a quote without end", number, line)
        elif len(cells) != n_cells:
            log.reject(f"{len(cells)} cells, expected {n_cells} ({form})", number, line)
        else:
            yield Row(number, cells, line)


def read_csv(config: TaskConfig, log: ReadLog, delimiter: str) -> Iterator[Row]:
    """Read rows of CSV, whose quoted cells may run over several lines."""
    waiting: deque[Numbered] = deque()
    lines = read_lines(config.path, config.encoding)

    def following(n: int) -> Numbered | None:
        """Give the n-th line that is not used yet."""
        while len(waiting) <= n:
            if (found := next(lines, None)) is None:
                return None
            waiting.append(found)
        return waiting[n]

    while (first := following(0)) is not None:
        number, text = first
        n = 1
        while n < MOST_LINES and _is_open(text, delimiter) and (more := following(n)):
            text += "\n" + more[1]
            n += 1
        cells = parse_csv(text, delimiter)
        if cells is None:  # only the line that opens the quote is lost
            log.read()
            log.reject("quotes that are not those of CSV", number, first[1])
            n = 1
        elif text.strip():
            yield Row(number, cells, text)
        for _ in range(n):
            waiting.popleft()


def parse_csv(text: str, delimiter: str) -> list[str] | None:
    """Take a row apart whose cells may be quoted; none if its quotes make no sense.

    >>> parse_csv('0,"a, b"', ",")
    ['0', 'a, b']
    """
    csv.field_size_limit(MAX_LINE_BYTES)
    try:
        rows = list(csv.reader([text], delimiter=delimiter, quotechar=QUOTE, strict=True))
    except csv.Error:
        return None
    return rows[0] if len(rows) == 1 else None


def _is_open(text: str, delimiter: str) -> bool:
    """Whether a text ends inside a quoted cell; only at its beginning does a quote open one."""
    start = 0
    while start >= 0:
        if text.startswith(QUOTE, start):
            end = text.find(QUOTE, start + 1)
            while end >= 0 and text.startswith(QUOTE, end + 1):
                end = text.find(QUOTE, end + 2)
            if end < 0:
                return True
            start = end
        start = text.find(delimiter, start) + 1 or -1
    return False
