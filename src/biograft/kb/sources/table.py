"""CSV and TSV reader with a column mapping: detects the delimiter, skips comments."""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, dropwhile, islice
from pathlib import Path

from biograft.errors import ConfigError, FormatError, nearest
from biograft.kb.names import language_code, whole_number
from biograft.kb.records import IS_A, Facts, IdKind, RelationRecord
from biograft.kb.sources.files import MAX_LINE_BYTES, read_lines
from biograft.kb.sources.format import Format, Item, Probe, SourceConfig
from biograft.kb.sources.log import ReadLog
from biograft.kb.sources.workbooks import is_workbook, lost_digits, read_sheet

_DELIMITERS = "\t,;|"
_QUOTE = '"'
_QUOTED = re.compile(r'"[^"]*"')
_BLANK = f"{_DELIMITERS}{_QUOTE} \r\n"
_MAX_COMMENTS = 2000
"""Lines of comments before a header that are looked at."""
_SAMPLED = 20
"""First lines that show the delimiter, or have the header among them."""
_MAX_CELL_LINES = 200
"""Lines of a quoted cell, at most, where quotes may be wrong."""
_STATED = re.compile(r"sep=(.)\s*", re.IGNORECASE)
"""The first line by which Excel is told the delimiter."""


def read_cells(
    config: SourceConfig, *, quoted_tsv: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Split lines into cells; comments and empty rows before the first row are skipped.

    Args:
        config: The file and its encoding.
        quoted_tsv: Cells of a TSV may be quoted, too.
    """
    if is_workbook(config.path):
        yield from dropwhile(lambda row: is_comment(row[1]), read_sheet(config.path, config.sheet))
        return
    numbered = read_lines(config.path, config.encoding)
    skipped = dropwhile(lambda each: is_comment(each[1]) or not each[1].strip(_BLANK), numbered)
    sample = list(islice(skipped, _SAMPLED))
    stated = _STATED.fullmatch(sample[0][1]) if sample else None
    if stated:
        del sample[0]
    if not sample:
        raise FormatError("holds no rows", path=config.path, remedy="check the file")
    start, first = sample[0]
    delimiter = stated[1] if stated else find_delimiter(first, [line for _, line in sample])
    lines = (line for _, line in chain(sample, numbered))
    if delimiter == "\t" and not quoted_tsv:
        for line, cells in csv_rows(lines, config.path, start, delimiter, quoted=False):
            yield line, [unquoted(cell) for cell in cells]
    else:
        yield from csv_rows(lines, config.path, start, delimiter)


def is_comment(row: str | Sequence[str]) -> bool:
    """Whether a line, or the only cell of a row, begins with ``#``; spreadsheets quote such lines.

    >>> is_comment("#version: 1"), is_comment('"#a, b",,'), is_comment("#,Code")
    (True, True, False)
    """
    if not isinstance(row, str):
        filled = [cell for cell in row if cell]
        return len(filled) == 1 and filled[0].startswith("#")
    text = row.lstrip(_QUOTE)
    return text.startswith("#") and text[1:2] not in tuple(_DELIMITERS)


def find_header(
    rows: Iterator[tuple[int, list[str]]], path: Path, is_header: Callable[[list[str]], bool]
) -> tuple[int, list[str], Iterator[tuple[int, list[str]]]]:
    """Return the line and the cells of the header of a table, and the rows below it.

    Titles may be above it; if no row near the beginning is the header, the first row is returned.

    Args:
        rows: Line and cells of each row.
        path: Their file.
        is_header: Whether cells, stripped, are those of the header.
    """
    sample = list(islice(rows, _SAMPLED))
    if not sample:
        raise FormatError("holds no rows", path=path, remedy="check the file")
    stripped = [[cell.strip() for cell in cells] for _, cells in sample]
    n = next((n for n, cells in enumerate(stripped) if is_header(cells)), 0)
    return sample[n][0], stripped[n], chain(sample[n + 1 :], rows)


def fit(cells: list[str], width: int, *, padded: bool = False) -> list[str]:
    """Return the cells of a row without the empty ones behind the last column.

    Args:
        cells: The cells.
        width: Number of columns.
        padded: Also complete a row that is short, and leave out what is under no header.

    >>> fit(["a", "b", ""], 2), fit(["a"], 2, padded=True), fit(["a", "b", "note"], 2)
    (['a', 'b'], ['a', ''], ['a', 'b', 'note'])
    """
    if padded:
        return [*cells, *[""] * (width - len(cells))][:width]
    return cells if any(map(str.strip, cells[width:])) else cells[:width]


def header_of(probe: Probe) -> set[str]:
    """Return the columns that the first line after comments names.

    Args:
        probe: Beginning of the file.
    """
    line = next((line for line in probe.lines(_MAX_COMMENTS) if not line.startswith("#")), "")
    return {cell.strip().strip(_QUOTE) for cell in line.split(find_delimiter(line))}


def named_rows(
    config: SourceConfig,
    log: ReadLog,
    needed: Sequence[str],
    remedy: str,
    other_names: Mapping[str, str] = {},
) -> Iterator[tuple[int, dict[str, str]]]:
    """Read the rows of a table with a header: the line of each, and its cells by column.

    Args:
        config: The file and its encoding.
        log: Where rows are counted; those of another width are rejected.
        needed: Columns that must be there.
        remedy: What to do if one is not.
        other_names: Other names of columns, and those that take their place.

    Raises:
        FormatError: A column is missing.
    """
    log.opened(config.path)
    columns: list[str] = []
    for line, cells in read_cells(config, quoted_tsv=True):
        if not columns:
            columns = [other_names.get(cell.strip(), cell.strip()) for cell in cells]
            if missing := [name for name in needed if name not in columns]:
                raise FormatError(
                    f"column {missing[0]!r} is missing",
                    path=config.path,
                    line=line,
                    text="\t".join(columns),
                    remedy=remedy,
                )
            continue
        row = fit([cell.strip() for cell in cells], len(columns))
        if not any(row):
            continue
        log.read()
        if [other_names.get(cell, cell) for cell in row] == columns:
            log.reject("the header again", line, "\t".join(row), path=config.path)
        elif len(row) == len(columns):
            yield line, dict(zip(columns, row, strict=True))
        else:
            reason = f"{len(row)} cells, expected {len(columns)}"
            log.reject(reason, line, "\t".join(row), path=config.path)


def csv_rows(
    lines: Iterable[str], path: Path, start: int, delimiter: str = ",", *, quoted: bool = True
) -> Iterator[tuple[int, list[str]]]:
    """Parse CSV, whose quoted cells may hold line ends; yield each row with its first line.

    Args:
        lines: The lines without line ends.
        path: The file, for errors.
        start: Number of the first of these lines.
        delimiter: Separator of cells.
        quoted: Whether cells may be quoted.

    Raises:
        FormatError: A quote is not closed, or followed by text.
    """
    csv.field_size_limit(MAX_LINE_BYTES)  # one for the whole process, so always set
    reader = csv.reader(
        (line + "\n" for line in lines),
        delimiter=delimiter,
        quotechar=_QUOTE if quoted else None,
        quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
        strict=True,
    )
    first = start
    try:
        for row in reader:
            yield first, row
            first = start + reader.line_num
    except csv.Error as error:
        raise FormatError(
            f"is not valid CSV ({error})",
            path=path,
            line=first,
            remedy="fix the quotes or line ends in this row; check that the file is complete",
        ) from error


def tolerant_csv(
    lines: Iterator[tuple[int, str]], log: ReadLog, delimiter: str = ","
) -> Iterator[tuple[int, list[str], str]]:
    """Parse CSV; of a row whose quotes are not those of CSV only the first line is lost.

    Args:
        lines: The lines with their numbers.
        log: Counts the lines that are rejected.
        delimiter: Separator of cells.

    Yields:
        The number of the first line of a row, its cells and its text.
    """
    csv.field_size_limit(MAX_LINE_BYTES)
    waiting = deque[tuple[int, str]]()
    taken: list[tuple[int, str]] = []

    def following() -> Iterator[str]:
        while len(taken) < _MAX_CELL_LINES:
            line = waiting.popleft() if waiting else next(lines, None)
            if line is None:
                return
            taken.append(line)
            yield line[1] + "\n"

    while True:
        taken.clear()
        try:
            cells = next(csv.reader(following(), delimiter=delimiter, strict=True), None)
        except csv.Error:
            log.read()
            log.reject("quotes that are not those of CSV", *taken[0])
            waiting.extendleft(reversed(taken[1:]))
            continue
        if cells is None:
            return
        text = "\n".join(line for _, line in taken)
        if text.strip():
            yield taken[0][0], cells, text


def find_delimiter(line: str, sample: Sequence[str] = ()) -> str:
    """Return the candidate that occurs most often in the first row.

    Args:
        line: The first row.
        sample: The first lines: candidates that fewer of them have as often stand back.

    >>> find_delimiter("code;term, long", ["code;term, long", "1;asthma", "2;gout"])
    ';'
    """
    bare = _QUOTED.sub("", line)
    rows = [_QUOTED.sub("", each) for each in sample]
    return max(
        _DELIMITERS,
        key=lambda each: (
            each in bare and sum(row.count(each) == bare.count(each) for row in rows),
            bare.count(each),
        ),
    )


def unquoted(cell: str) -> str:
    """Remove the quotes that Excel and pandas write in a TSV; other quote marks are text.

    >>> [unquoted(cell) for cell in ('"flu"', '5" plaque', '"a" or "b"')]
    ['flu', '5" plaque', '"a" or "b"']
    """
    if len(cell) < 2 or cell[0] != _QUOTE or cell[-1] != _QUOTE:
        return cell
    inner = cell[1:-1]
    if _QUOTE in inner.replace(_QUOTE * 2, ""):
        return cell
    return inner.replace(_QUOTE * 2, _QUOTE)


ROLES = (
    "id name synonyms definition type language parents alternates xrefs head relation tail".split()
)
RELATION_PREFIX = "relation."


@dataclass(frozen=True, slots=True)
class _TableRow:
    """A row: its cells by role, and its first line."""

    line: int
    cells: Mapping[str, str]
    text: str

    def get(self, role: str) -> str:
        return self.cells.get(role, "").strip()


def recognise(probe: Probe) -> bool:
    """A header with the columns ``id`` and ``name``, and a row."""
    n_rows = sum(not line.startswith("#") for line in probe.lines(_MAX_COMMENTS)) - 1
    return n_rows > 0 and {"id", "name"} <= {name.lower() for name in header_of(probe)}


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield the facts of every row."""
    described: set[str] = set()
    named: set[tuple[str, str]] = set()
    for row in _rows(config, log):
        if "head" in row.cells:
            head, relation, tail = row.get("head"), row.get("relation"), row.get("tail")
            if head and relation and tail:
                yield RelationRecord(head, relation, tail, line=row.line)
            else:
                log.reject("head, relation or tail is empty", row.line, row.text)
            continue
        concept = row.get("id")
        if not concept:
            log.reject("id is empty", row.line, row.text)
            continue
        if lost_digits(concept):
            log.reject(
                "the id is a rounded number, a spreadsheet has lost digits", row.line, row.text
            )
            continue
        language = language_code(row.get("language")) or config.language or "en"
        facts = Facts(concept, row.line, language)
        if "name" in row.cells:
            if row.get("name"):
                # a concept's first name in each language is its preferred one
                is_new = (concept, language) not in named
                named.add((concept, language))
                yield from facts.names([row.get("name")], is_new=is_new)
            else:
                log.reject("name is empty", row.line, row.text)
        yield from _others(row, facts, config, concept in described)
        described.add(concept)


def _others(row: _TableRow, facts: Facts, config: SourceConfig, repeated: bool) -> Iterator[Item]:
    """Yield what a row says of its concept besides the name."""
    yield from map(facts.name, _split(row.get("synonyms"), config))
    if row.get("definition"):
        yield facts.definition(row.get("definition"))
    types = _split(row.get("type"), config)
    if not types and config.default_type and not repeated:
        types = [config.default_type]
    yield from map(facts.type, types)
    for role, id_kind in (("alternates", IdKind.ALTERNATE), ("xrefs", IdKind.XREF)):
        for other in _split(row.get(role), config):
            yield facts.id(other, id_kind)
    for role in row.cells:
        relation = IS_A if role == "parents" else role.removeprefix(RELATION_PREFIX)
        if relation != role:
            for tail in _split(row.get(role), config):
                yield facts.relation(relation, tail)


def _split(cell: str, config: SourceConfig) -> list[str]:
    return [part.strip() for part in cell.split(config.separator or "|") if part.strip()]


def _rows(config: SourceConfig, log: ReadLog) -> Iterator[_TableRow]:
    """Read the table's rows as cells by role."""
    roles: dict[str, int] = {}
    header: list[str] = []
    n_cells = 0
    numbered = all(column.startswith("#") for column in config.columns.values())
    has_header = not (config.columns and numbered)
    for line, cells in read_cells(config):
        if not roles:
            roles = _roles(config, cells if has_header else [], line)
            header, n_cells = cells, len(cells)
            if has_header:
                unused = [cell.strip() for k, cell in enumerate(cells) if k not in roles.values()]
                if any(unused):
                    log.note(f"columns not used: {', '.join(filter(None, unused))}")
                continue
        text = " ".join(cells)
        if not text.strip():
            continue
        log.read()
        surplus = "".join(cells[n_cells:]).strip() if has_header else ""
        if has_header and cells == header:
            log.reject("the header again", line, text)
        elif len(cells) <= max(roles.values()) or surplus:
            log.reject(f"{len(cells)} columns, expected {n_cells}", line, text)
        else:
            yield _TableRow(line, {role: cells[k] for role, k in roles.items()}, text)


def _roles(config: SourceConfig, header: list[str], line: int) -> dict[str, int]:
    """Return the position of the column of each role."""
    columns = dict(config.columns)
    if not columns:  # those with the name of a role, or the singulars "parent" and "synonym"
        called = {cell.strip().lower(): cell.strip() for cell in header}
        called |= {f"{word}s": cell for word, cell in called.items() if f"{word}s" in ROLES}
        columns = {role: called[role] for role in ROLES if role in called}
    for role in columns:
        if role not in ROLES and not role.startswith(RELATION_PREFIX):
            raise ConfigError(f"no column role is called {role!r}; {nearest(role, ROLES)}")
    needed = ("head", "relation", "tail") if "head" in columns else ("id",)
    for role in needed:
        if role not in columns:
            raise ConfigError(f"columns: the column of {role!r} is missing for {config.path}")
    names = [cell.strip() for cell in header]
    return {role: column_position(c, names, config.path, line) for role, c in columns.items()}


def column_position(column: str, header: Sequence[str], path: Path, line: int | None) -> int:
    """Return the position of a column, named or as ``#1``.

    Args:
        column: Its name, which must occur once in the header, or its number.
        header: The cells of the header; empty if there is none.
        path: The file, for the error.
        line: Line of the header, for the error; None if there are no lines.

    Raises:
        FormatError: The header has no such column, or several.
        ConfigError: There is no header, and this is no number.
    """
    number = whole_number(column[1:]) if column.startswith("#") else None
    if number and (not header or number <= len(header)):
        return number - 1
    if not header:
        raise ConfigError(f"{column!r} is not a column number such as '#1'")
    if (n := header.count(column)) != 1:
        raise FormatError(
            f"column {column!r} occurs {n} times in the header"
            if n
            else f"column {column!r} is missing",
            path=path,
            line=line,
            text=",".join(header),
            remedy="give each column a name of its own" if n else nearest(column, header),
        )
    return header.index(column)


FORMAT = Format(recognise, read, tabular=True)
