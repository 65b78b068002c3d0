"""Shared parts of the Chinese disease readers: encoding, page text, truncated items, relations.

Both sources are crawls of public health sites, which truncate long items to ``类风湿性关节...``;
such items are rejected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from biograft.errors import FormatError
from biograft.kb.names import HAN, HAN_CHARACTER
from biograft.kb.records import Facts, NameRecord, RelationRecord, TypeRecord
from biograft.kb.sources.files import read_lines
from biograft.kb.sources.format import Format, Item, Probe, SourceConfig
from biograft.kb.sources.json_files import read_objects
from biograft.kb.sources.log import ReadLog
from biograft.kb.sources.table import tolerant_csv
from biograft.kb.sources.triples import NamedEntities

ELLIPSES = ("...", "…")
TRUNCATED = "cut short in the source"
PAGE_TEXT = frozenset({"[详细]", "暂无相关资料", "应该如何用药？用什么药？", ">>"})
"""Text of the web page in place of an item: *more*, *no data yet*, a link."""

TAIL_TYPES: Mapping[str, str] = {
    "has_complication": "Disease",
    "has_symptom": "Symptom",
    "need_check": "Check",
    "belongs_to_department": "Department",
    "common_drug": "Drug",
    "treat_way": "Treatment",
    "good_food": "Food",
    "avoid_food": "Food",
    "recommend_recipe": "Food",
    "body_part": "Body",
}
"""Relation -> the type of its tail."""

EntityItem: TypeAlias = NameRecord | TypeRecord | RelationRecord


def is_truncated(text: str) -> bool:
    """Whether the source truncated this item."""
    return text.endswith(ELLIPSES)


def relate(
    entities: NamedEntities, head: str, relation: str, items: Iterable[str], log: ReadLog, line: int
) -> Iterator[EntityItem]:
    """Yield a relation to each item, which becomes a concept.

    Args:
        entities: Entities of the file so far.
        head: Name of the head.
        relation: Name of the relation.
        items: Names of the tails.
        log: Counts what is left out.
        line: Line of the file.
    """
    kind = TAIL_TYPES[relation]
    for item in items:
        tail = item.strip()
        if not tail:
            continue
        if tail in PAGE_TEXT:
            log.filter("text of the web page")
            continue
        if is_truncated(tail):
            log.reject(TRUNCATED, line, tail)
            continue
        yield from entities.mention(tail, kind, line)
        yield RelationRecord(head, relation, tail, line=line)


SUMMARY = "gaishu_info"

RELATIONS: dict[tuple[str, ...], str] = {
    (SUMMARY, "has_complication"): "has_complication",
    (SUMMARY, "belongs_to_department"): "belongs_to_department",
    (SUMMARY, "common_drug"): "common_drug",
    (SUMMARY, "treat_way"): "treat_way",
    ("symptom_data", "symptoms"): "has_symptom",
    ("inspect_info",): "need_check",
    ("food_info", "good_food"): "good_food",
    ("food_info", "avoid_food"): "avoid_food",
    ("food_info", "recommand_recipes"): "recommend_recipe",
}
"""Path of a list in a page -> the relation to its items (the misspelling is in the source)."""


def recognise_pages(probe: Probe) -> bool:
    """A JSON object with the summary of a page on the first line."""
    line = next(iter(probe.text.lstrip().split("\n")), "")
    return line.startswith("{") and f'"{SUMMARY}"' in line


def read_pages(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield each page's name, description and relations.

    Args:
        config: File, and options of ``kb build``.
        log: Counts records read, and what is rejected, doubtful or filtered.
    """
    language = config.language or "zh"
    entities = NamedEntities(language)
    for row in read_objects(config.path, log, config.encoding):
        page, line = row.value, row.line
        name = _text(page, (SUMMARY, "name"))
        if not name:
            log.reject(f"no name in {SUMMARY}", line, row.text)
            continue
        if is_truncated(name):
            log.reject(TRUNCATED, line, name)
            continue
        log.define(name, line)
        yield from entities.mention(name, "Disease", line)
        facts = Facts(name, line, language)
        if own_id := _text(page, ("id",)):
            yield facts.id(own_id)
        if description := " ".join(_text(page, (SUMMARY, "desc")).split()):
            yield facts.definition(description)
        for path, relation in RELATIONS.items():
            items = _items(page, path, line, log)
            yield from relate(entities, name, relation, items, log, line)


def _find(page: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        page = page.get(key) if isinstance(page, dict) else None
    return page


def _text(page: Any, path: tuple[str, ...]) -> str:
    content = _find(page, path)
    return content.strip() if isinstance(content, str) else ""


def _items(page: dict[str, Any], path: tuple[str, ...], line: int, log: ReadLog) -> list[str]:
    """Return the list of names at a path; empty if the page lacks it."""
    content = _find(page, path)
    if content is None:
        return []
    if not isinstance(content, list) or not all(isinstance(item, str) for item in content):
        log.reject(f"{'.'.join(path)} is not a list of names", line, str(content))
        return []
    return content


DISEASE_PAGES = Format(recognise_pages, read_pages, languages_inside=False)


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


def recognise_table(probe: Probe) -> bool:
    """A header with the columns of this table, and Chinese text in UTF-8 or GB18030."""
    header = _header(probe.first_line)
    if not set(NEEDED) <= set(header) or not set(COLUMNS) & set(header):
        return False
    return HAN_CHARACTER.search(probe.text) is not None


def read_table(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield each row's name, aliases and relations.

    Args:
        config: File, and options of ``kb build``.
        log: Counts records read, and what is rejected, doubtful or filtered.
    """
    language = config.language or "zh"
    entities = NamedEntities(language)
    for line, cells in _rows(config.path, config.encoding, log):
        name = cells["name"].strip()
        if not name:
            log.reject("no name", line, ",".join(cells.values()))
            continue
        if is_truncated(name):
            log.reject(TRUNCATED, line, name)
            continue
        log.define(name, line)
        yield from entities.mention(name, "Disease", line)
        for part in _ALIAS_BREAK.split(cells["alias"].replace("[详细]", " ")):
            alias = part.strip()
            if not alias or alias in PAGE_TEXT:
                continue
            if is_truncated(alias):
                log.reject(TRUNCATED, line, alias)
            elif alias != name:
                yield NameRecord(name, alias, language, line=line)
        for column, relation in COLUMNS.items():
            items = cells.get(column, "").split()
            yield from relate(entities, name, relation, items, log, line)


def _rows(path: Path, encoding: str, log: ReadLog) -> Iterator[tuple[int, dict[str, str]]]:
    """Read the rows whose cells fit the columns of the header."""
    lines = read_lines(path, encoding)
    header = _header(next(lines, (1, ""))[1])
    if not set(NEEDED) <= set(header):
        raise FormatError(
            f"expected columns {' and '.join(NEEDED)}",
            path=path,
            line=1,
            text=",".join(header),
            remedy="name the format or, for another table, its columns",
        )
    for start, cells, text in tolerant_csv(lines, log):
        log.read()
        if len(cells) != len(header):
            log.reject(f"{len(cells)} cells, expected {len(header)}", start, text)
        elif any(cell for cell, column in zip(cells, header, strict=True) if not column):
            log.reject("cells without a column, so the row is shifted", start, text)
        else:
            yield start, dict(zip(header, cells, strict=True))


def _header(line: str) -> list[str]:
    return [cell.strip().strip('"') for cell in line.split(",")]


DISEASE_TABLE = Format(recognise_table, read_table, languages_inside=False, tabular=True)
