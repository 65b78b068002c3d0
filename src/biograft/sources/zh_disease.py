"""Chinese disease page reader: one JSON object per line, with description, symptoms, drugs, food.

Pages and the items they list are concepts whose id is their name, since other files of this family
refer by name; the id of a page is kept as an alternate id. Relations have the names of graphs made
from these pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from biograft.languages import language_code
from biograft.records import DefinitionRecord, IdRecord
from biograft.sources.chinese import TRUNCATED, chinese_encoding, is_truncated, relate
from biograft.sources.format import Format, Item, Probe, SourceConfig
from biograft.sources.json_files import JsonRow, read_objects
from biograft.sources.log import ReadLog
from biograft.sources.triples import NamedEntities

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


def recognise(probe: Probe) -> bool:
    """A JSON object with the summary of a page on the first line."""
    line = next(iter(probe.text.lstrip().split("\n")), "")
    return line.startswith("{") and f'"{SUMMARY}"' in line


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield each page's name, description and relations."""
    language = language_code(config.language or "zh")
    entities, pages = NamedEntities(language), set[str]()
    encoding = chinese_encoding(config.path, config.encoding)
    for row in read_objects(config.path, log, encoding):
        page, line = row.value, row.line
        name = _text(page, (SUMMARY, "name"))
        if not _is_name(name, row, log):
            continue
        if name in pages:
            log.doubt("id defined twice", line, name)
        pages.add(name)
        yield from entities.mention(name, "Disease", line)
        if own_id := _text(page, ("id",)):
            yield IdRecord(name, own_id, line=line)
        if description := " ".join(_text(page, (SUMMARY, "desc")).split()):
            yield DefinitionRecord(name, description, language, line=line)
        for path, relation in RELATIONS.items():
            items = _items(page, path, line, log)
            yield from relate(entities, name, relation, items, log, line)


def _is_name(name: str, row: JsonRow, log: ReadLog) -> bool:
    if not name:
        log.reject(f"no name in {SUMMARY}", row.line, row.text)
    elif is_truncated(name):
        log.reject(TRUNCATED, row.line, name)
    else:
        return True
    return False


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


FORMAT = Format(recognise, read, languages_inside=False)
