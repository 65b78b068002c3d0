"""What the Chinese disease sources share: their encoding, their words, their cut items.

Both come from crawls of public health sites, which shorten long items on a page to
``类风湿性关节...``. Such an item names nothing any more.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from biograft.records import NameRecord, RelationRecord, TypeRecord
from biograft.sources.files import read_head
from biograft.sources.log import ReadLog
from biograft.sources.triples import NamedEntities

ELLIPSES = ("...", "…")
TRUNCATED = "cut short in the source"
PAGE_TEXT = frozenset({"[详细]", "暂无相关资料", "应该如何用药？用什么药？", ">>"})
"""Words of the web page that stand where items should: *more*, *no data yet*, a link."""

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
"""Relation -> the type of what it points to."""

EntityItem: TypeAlias = NameRecord | TypeRecord | RelationRecord


def chinese_encoding(path: Path, configured: str) -> str:
    """Name the encoding: as configured; by default GB18030 where the head is not UTF-8."""
    if configured.lower() not in ("utf-8", "utf8"):
        return configured
    return "utf-8" if decodes(read_head(path), "utf-8") else "gb18030"


def decodes(head: bytes, encoding: str) -> bool:
    """Whether the bytes, of which the last character may be cut, are in an encoding."""
    try:
        codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def is_truncated(text: str) -> bool:
    """Whether the source shortened this item."""
    return text.endswith(ELLIPSES)


def relate(
    entities: NamedEntities, head: str, relation: str, items: Iterable[str], log: ReadLog, line: int
) -> Iterator[EntityItem]:
    """Yield a relation to each item, which becomes a concept of its own."""
    kind = TAIL_TYPES[relation]
    for item in items:
        tail = item.strip()
        if not tail:
            continue
        if tail in PAGE_TEXT:
            log.filter("words of the web page")
            continue
        if is_truncated(tail):
            log.reject(TRUNCATED, line, tail)
            continue
        yield from entities.mention(tail, kind, line)
        yield RelationRecord(head, relation, tail, line=line)
