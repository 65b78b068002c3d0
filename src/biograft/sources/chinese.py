"""Shared parts of the Chinese disease readers: encoding, page text, truncated items, relations.

Both sources are crawls of public health sites, which truncate long items to ``类风湿性关节...``;
such items are rejected.
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


def chinese_encoding(path: Path, configured: str) -> str:
    """Return the configured encoding; by default GB18030 if the head is not UTF-8."""
    if configured.lower() not in ("utf-8", "utf8"):
        return configured
    return "utf-8" if decodes(read_head(path), "utf-8") else "gb18030"


def decodes(head: bytes, encoding: str) -> bool:
    """Whether bytes are in an encoding; their last character may be incomplete."""
    try:
        codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def is_truncated(text: str) -> bool:
    """Whether the source truncated this item."""
    return text.endswith(ELLIPSES)


def relate(
    entities: NamedEntities, head: str, relation: str, items: Iterable[str], log: ReadLog, line: int
) -> Iterator[EntityItem]:
    """Yield a relation to each item, which becomes a concept."""
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
