"""Ids and labels in tables and workbooks: columns of ids, each with a column of labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain, islice

from biograft.kb.sources.table import column_position, csv_rows, unquoted
from biograft.kb.sources.workbooks import read_sheet
from biograft.kb.verify.pairs import LABEL_KEY, Pair, PairFinder, SourceText, Span, pair_keys

Row = tuple[int, list[str]]
"""The number of a row, and its cells."""
Columns = list[tuple[int, int | None]]
"""The position of each column of ids, and that of its labels."""
_SAMPLED = 100
"""Rows by which columns of ids are found where the header does not say which they are."""
_LABELS = 0.5


def table_pairs(source: SourceText, finder: PairFinder) -> Iterator[Pair]:
    """Yield the ids in the cells of a table, or of the sheets of a workbook.

    Args:
        source: The file.
        finder: What is looked for.

    Raises:
        FormatError: The table has no such column.
    """
    if not source.sheets:
        yield from _pairs(_rows(source), source, finder)
    for sheet in source.sheets:
        yield from _pairs(read_sheet(source.path, sheet), source, finder, sheet)


def _rows(source: SourceText) -> Iterator[Row]:
    """Split a text into rows; a quoted cell may hold line ends."""
    start, _ = source.first_row
    lines, quoted = source.text.split("\n")[start - 1 :], source.delimiter != "\t"
    rows = csv_rows(lines, source.path, start, source.delimiter, quoted=quoted)
    if not quoted and '"' in source.text:
        rows = ((number, [unquoted(cell) for cell in cells]) for number, cells in rows)
    return rows


def _pairs(
    rows: Iterator[Row],
    source: SourceText,
    finder: PairFinder,
    sheet: str = "",
) -> Iterator[Pair]:
    first = next(rows, None)
    if first is None:
        return
    header = [cell.strip().lstrip("#").strip() for cell in first[1]]
    chosen = _chosen_columns(header, source, finder.columns)
    if not chosen:  # the cells show which columns hold ids; there may be no header
        sample = [first, *(row for row in islice(rows, _SAMPLED) if any(row[1]))]
        chosen, rows = _columns_of_ids(sample, finder.is_id), chain(sample, rows)
    named = [
        (
            k,
            other,
            (header[k] if k < len(header) else "") or f"#{k + 1}",
            None if sheet else partial(_located, source, k, other),
        )
        for k, other in chosen
    ]
    is_id = finder.is_id
    for number, cells in rows:
        for k, other, column, locate in named:
            cell = cells[k].strip() if k < len(cells) else ""
            if not cell:
                continue
            label = cells[other].strip() if other is not None and other < len(cells) else ""
            ids, labels = _split(cell), [label]
            if len(ids) > 1 and len(labels := _split(label)) != len(ids):
                labels = [""] * len(ids)
            at = f"{sheet}!{_letters(k)}{number}" if sheet else column
            for n, one in enumerate(ids):
                if is_id(one):
                    yield Pair(one, labels[n], row=number, column=at, part=n, locate=locate)


def _chosen_columns(header: list[str], source: SourceText, columns: Mapping[str, str]) -> Columns:
    """Return the columns that were declared, or that the header pairs."""
    if not columns:
        pairs = pair_keys(tuple(header))
        labels = [name for name in header if LABEL_KEY.fullmatch(name)]
        if len(pairs) == len(labels) == 1:  # they belong together, whatever they are called
            pairs = ((pairs[0][0], labels[0]),)
        return [(header.index(one), header.index(label) if label else None) for one, label in pairs]
    found = {role: column_position(name, header, source.path, 1) for role, name in columns.items()}
    return [(found["id"], found.get("label"))]


def _columns_of_ids(rows: list[Row], is_id: Callable[[str], bool]) -> Columns:
    """Return the columns whose cells are ids, each with the column of labels beside it."""
    width = max(len(cells) for _, cells in rows)
    ids = []
    for k in range(width):
        cells = [row[k].strip() for _, row in rows if k < len(row) and row[k].strip()]
        n = sum(all(map(is_id, _split(cell))) for cell in cells)
        if cells and 2 * n > len(cells):
            ids.append(k)
    chosen: Columns = []
    for k in ids:
        beside = (n for n in (k + 1, k - 1) if n not in ids and _are_labels(rows, n))
        chosen.append((k, next(beside, None)))
    return chosen


def _are_labels(rows: list[Row], k: int) -> bool:
    cells = [row[k] for _, row in rows if 0 <= k < len(row) and row[k].strip()]
    words = sum(
        any(map(str.isalpha, cell)) and not cell.replace(".", "").isdigit() for cell in cells
    )
    return bool(cells) and words > _LABELS * len(rows)


def _split(cell: str) -> list[str]:
    """Split a cell of several ids or labels."""
    if "|" in cell or ";" in cell:
        return [part.strip() for part in cell.split("|" if "|" in cell else ";")]
    return [cell]


def _letters(k: int) -> str:
    """Return the letters of a column of a workbook."""
    letters = ""
    k += 1
    while k:
        k, rest = divmod(k - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


# ---- where a pair stands


def _located(source: SourceText, k: int, other: int | None, pair: Pair) -> Pair:
    """Find where a pair stands; labels of cells with several ids are not looked for."""
    start, end = _cell_span(source, pair.row, k)
    ids = _split(source.text[start:end])
    for each in ids[: pair.part]:
        start = source.text.index(each, start) + len(each)
    if len(ids) > 1:
        start = source.text.index(pair.id, start)
        end = start + len(pair.id)
    label = (-1, -1) if other is None or len(ids) > 1 else _cell_span(source, pair.row, other)
    return pair._replace(
        start=start, end=end, label_start=label[0], label_end=label[1], locate=None
    )


def _cell_span(source: SourceText, row: int, k: int) -> Span:
    """Return where a cell stands in the text, without blanks and quotes around it."""
    delimiter = re.escape(source.delimiter)
    quoted = "" if source.delimiter == "\t" else '(?:"(?:[^"]|"")*")?'
    cell = rf"{quoted}[^{delimiter}\n]*"
    pattern = re.compile(rf"(?:{cell}{delimiter}){{{k}}}({cell})")
    if not (match := pattern.match(source.text, source.starts[row - 1])):
        return -1, -1
    inner = match[1].strip()
    start = match.start(1) + match[1].index(inner)
    n_quotes = int(len(inner) > 1 and inner[0] == inner[-1] == '"')
    return start + n_quotes, start + len(inner) - n_quotes
