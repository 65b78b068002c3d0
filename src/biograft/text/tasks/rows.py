"""Rows of delimited task files (CSV, TSV), and grouping of rows with one answer into rankings.

Rows are parsed line by line, so that a malformed row does not affect others.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from biograft.kb.names import whole_number
from biograft.kb.sources.files import MAX_LINE_BYTES, read_lines
from biograft.text.tasks.records import Answer, RankingExample
from biograft.text.tasks.registry import TaskConfig

if TYPE_CHECKING:
    from biograft.kb.sources.log import ReadLog

QUOTE = '"'
MAX_CELL_LINES = 200
"""Maximum lines of a quoted cell; a longer one counts as an unclosed quote."""

Numbered = tuple[int, str]


@dataclass(frozen=True, slots=True)
class TabRow:
    """The cells of a row, its first line, and its text."""

    line: int
    cells: list[str]
    text: str


def read_tabbed(
    config: TaskConfig, log: ReadLog, n_cells: int, form: str, *, quoted: bool = False
) -> Iterator[TabRow]:
    """Read tab-separated rows; rows with another number of cells are rejected.

    ``quoted`` cells are as in CSV, but on a single line.
    """
    log.opened(config.path)
    for number, line in read_lines(config.path, config.encoding):
        if not line.strip():
            continue
        log.read()
        cells = parse_csv(line, "\t") if quoted and QUOTE in line else line.split("\t")
        if cells is None:
            log.reject("an unclosed quote", number, line)
        elif len(cells) != n_cells:
            log.reject(f"{len(cells)} cells, expected {n_cells} ({form})", number, line)
        else:
            yield TabRow(number, cells, line)


def read_csv(config: TaskConfig, log: ReadLog, delimiter: str) -> Iterator[TabRow]:
    """Read rows of CSV, whose quoted cells may span several lines."""
    waiting: deque[Numbered] = deque()
    lines = read_lines(config.path, config.encoding)

    def following(n: int) -> Numbered | None:
        """Return the n-th line that is not used yet."""
        while len(waiting) <= n:
            if (line := next(lines, None)) is None:
                return None
            waiting.append(line)
        return waiting[n]

    while (first := following(0)) is not None:
        number, text = first
        n, is_open = 1, _is_open(text, delimiter)
        while n < MAX_CELL_LINES and is_open and (more := following(n)):
            is_open = _is_open(more[1], delimiter, is_open=True)  # each line is looked at once
            text += "\n" + more[1]
            n += 1
        cells = parse_csv(text, delimiter)
        if cells is None:  # only the line that opens the quote is lost
            log.read()
            log.reject("quotes that are not those of CSV", number, first[1])
            n = 1
        elif text.strip():
            yield TabRow(number, cells, text)
        for _ in range(n):
            waiting.popleft()


def parse_csv(text: str, delimiter: str) -> list[str] | None:
    """Split a row whose cells may be quoted; None if its quotes are invalid.

    >>> parse_csv('0,"a, b"', ",")
    ['0', 'a, b']
    """
    csv.field_size_limit(MAX_LINE_BYTES)
    try:
        rows = list(csv.reader([text], delimiter=delimiter, quotechar=QUOTE, strict=True))
    except csv.Error:
        return None
    return rows[0] if len(rows) == 1 else None


def _is_open(text: str, delimiter: str, *, is_open: bool = False) -> bool:
    """Whether a text, which may begin inside a quoted cell, ends inside one.

    A quote opens a cell only at its start.
    """
    start = 0
    while start >= 0:
        if is_open or text.startswith(QUOTE, start):
            end = text.find(QUOTE, start + (not is_open))
            while end >= 0 and text.startswith(QUOTE, end + 1):
                end = text.find(QUOTE, end + 2)
            if end < 0:
                return True
            start, is_open = end, False
        start = text.find(delimiter, start) + 1 or -1
    return False


JudgedAnswer = tuple[str, str, Answer]
"""The id of a question, its text, and one answer."""


def group_by_question(judged: Iterable[JudgedAnswer]) -> Iterator[RankingExample]:
    """Group answers by question into ranking examples."""
    questions: dict[tuple[str, str], list[Answer]] = {}
    for identifier, query, answer in judged:
        questions.setdefault((identifier, query), []).append(answer)
    for (identifier, query), candidates in questions.items():
        yield RankingExample(query, tuple(candidates), identifier)


def relevance(cell: str) -> int | None:
    """Parse a relevance, a whole number from 0; None if it is not one.

    >>> relevance(" 2 "), relevance("yes")
    (2, None)
    """
    return whole_number(cell.strip())
