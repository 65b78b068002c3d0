"""Chinese disease table reader: a CSV, mostly in GB18030, with aliases and lists.

The name of a row is the id of its concept, as in the disease pages. Aliases are separated by any of
``,，、;；``, and by whitespace between two Chinese characters (beside Latin letters it is part of
the name, as in *Huntington 病*); other lists are separated by whitespace only. The ``treatment``
column is running text and is not read.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from biograft.errors import FormatError
from biograft.languages import language_code
from biograft.records import NameRecord
from biograft.sources.chinese import (
    PAGE_TEXT,
    TRUNCATED,
    chinese_encoding,
    decodes,
    is_truncated,
    relate,
)
from biograft.sources.files import read_lines
from biograft.sources.format import Format, Item, Probe, SourceConfig
from biograft.sources.log import ReadLog
from biograft.sources.triples import NamedEntities
from biograft.text import HAN

NEEDED = ("name", "alias")
COLUMNS = {
    "part": "body_part",
    "department": "belongs_to_department",
    "checklist": "need_check",
    "symptom": "has_symptom",
    "complication": "has_complication",
    "drug": "common_drug",
}
"""Column -> the relation to the items in its cells."""

_ALIAS_BREAK = re.compile(rf"[,，、;；]|(?<=[{HAN}])\s+(?=[{HAN}])")


def recognise(probe: Probe) -> bool:
    """A header with the columns of this table, and Chinese text in UTF-8 or GB18030."""
    header = _header(next(iter(probe.lines(1)), ""))
    if not set(NEEDED) <= set(header) or not set(COLUMNS) & set(header):
        return False
    return any(byte > 0x7F for byte in probe.head) and (
        decodes(probe.head, "utf-8") or decodes(probe.head, "gb18030")
    )


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield each row's name, aliases and relations."""
    log.opened(config.path)
    language = language_code(config.language or "zh")
    entities, seen = NamedEntities(language), set[str]()
    for row in _rows(config.path, chinese_encoding(config.path, config.encoding), log):
        name = row.cells["name"].strip()
        if not name:
            log.reject("no name", row.line, ",".join(row.cells.values()))
            continue
        if is_truncated(name):
            log.reject(TRUNCATED, row.line, name)
            continue
        if name in seen:
            log.doubt("id defined twice", row.line, name)
        seen.add(name)
        yield from entities.mention(name, "Disease", row.line)
        yield from _aliases(row, name, language, log)
        for column, relation in COLUMNS.items():
            items = row.cells.get(column, "").split()
            yield from relate(entities, name, relation, items, log, row.line)


def _aliases(row: _AliasRow, name: str, language: str, log: ReadLog) -> Iterator[NameRecord]:
    """Yield the synonyms in the alias cell, without the name itself."""
    for part in _ALIAS_BREAK.split(row.cells["alias"].replace("[详细]", " ")):
        alias = part.strip()
        if not alias or alias in PAGE_TEXT:
            continue
        if is_truncated(alias):
            log.reject(TRUNCATED, row.line, alias)
        elif alias != name:
            yield NameRecord(name, alias, language, line=row.line)


@dataclass(frozen=True, slots=True)
class _AliasRow:
    line: int
    cells: dict[str, str]


def _rows(path: Path, encoding: str, log: ReadLog) -> Iterator[_AliasRow]:
    """Read the rows whose cells fit the columns of the header."""
    lines = (line + "\n" for _, line in read_lines(path, encoding))
    header = _header(next(lines, ""))
    if not set(NEEDED) <= set(header):
        raise FormatError(
            f"expected columns {' and '.join(NEEDED)}",
            path=path,
            line=1,
            text=",".join(header),
            remedy="name the format or, for another table, its columns",
        )
    reader = csv.reader(lines, strict=True)
    while True:
        start = reader.line_num + 2
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            log.read()
            _refuse_unclosed(error, path, start)
            log.reject(f"not CSV ({error})", start)
            continue
        if cells:
            log.read()
            if _fits(cells, header, start, log):
                yield _AliasRow(start, dict(zip(header, cells, strict=False)))


def _header(line: str) -> list[str]:
    return [cell.strip().strip('"') for cell in line.split(",")]


def _fits(cells: list[str], header: list[str], line: int, log: ReadLog) -> bool:
    """Whether the cells of a row fit the columns."""
    if len(cells) != len(header):
        log.reject(f"{len(cells)} cells, expected {len(header)}", line, ",".join(cells))
    elif any(cell for cell, column in zip(cells, header, strict=True) if not column):
        log.reject("cells without a column, so the row is shifted", line, ",".join(cells))
    else:
        return True
    return False


def _refuse_unclosed(error: csv.Error, path: Path, line: int) -> None:
    """Raise a ``FormatError`` for an unclosed quote, which would swallow all rows after it."""
    if "field larger" in str(error) or "unexpected end" in str(error):
        raise FormatError(
            "a quoted cell is not closed", path=path, line=line, remedy="close the quotes"
        ) from error


FORMAT = Format(recognise, read, languages_inside=False, tabular=True)
