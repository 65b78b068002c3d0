"""Chinese disease pages: one JSON object a line, with description, symptoms, drugs, food.

The pages and what they point to are concepts whose id is their name, since other files of this
family refer by name; the page's own id is kept as an alternate one. Relations have the names
that graphs made from these pages use.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from biograft.languages import language_code
from biograft.records import DefinitionRecord, IdRecord
from biograft.sources.chinese import CUT_REASON, chinese_encoding, is_cut, relate
from biograft.sources.entities import Entities
from biograft.sources.files import read_lines
from biograft.sources.format import Format, Item, Probe, SourceConfig
from biograft.sources.log import ReadLog

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
"""Where a list stands in a page -> the relation to its items (the misspelling is theirs)."""


def recognise(probe: Probe) -> bool:
    """A JSON object with the pages' summary stands on the first line."""
    line = next(iter(probe.text.lstrip().split("\n")), "")
    return line.startswith("{") and f'"{SUMMARY}"' in line


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield each page's name, description and relations."""
    log.opened(config.path)
    language = language_code(config.language or "zh")
    entities, pages = Entities(language), set[str]()
    encoding = chinese_encoding(config.path, config.encoding)
    for number, line in read_lines(config.path, encoding):
        if not line.strip():
            continue
        log.read()
        page = _parse(line, number, log)
        name = _text(page, (SUMMARY, "name"))
        if page is None or not _is_name(name, number, line, log):
            continue
        if name in pages:
            log.doubt("id defined twice", number, name)
        pages.add(name)
        yield from entities.mention(name, "Disease", number)
        if own_id := _text(page, ("id",)):
            yield IdRecord(name, own_id, line=number)
        if description := " ".join(_text(page, (SUMMARY, "desc")).split()):
            yield DefinitionRecord(name, description, language, line=number)
        for place, relation in RELATIONS.items():
            items = _items(page, place, number, log)
            yield from relate(entities, name, relation, items, log, number)


def _parse(line: str, number: int, log: ReadLog) -> dict[str, Any] | None:
    """Read one page, or say why it cannot be read."""
    try:
        page = json.loads(line)
        if "\\ud" in line.lower():  # only an escape can bring half a surrogate pair
            json.dumps(page, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        log.reject("holds half a surrogate pair", number, line)
    except (ValueError, RecursionError):
        log.reject("not JSON", number, line)
    else:
        if isinstance(page, dict):
            return page
        log.reject("not a JSON object", number, line)
    return None


def _is_name(name: str, number: int, line: str, log: ReadLog) -> bool:
    if not name:
        log.reject(f"no name in {SUMMARY}", number, line)
    elif is_cut(name):
        log.reject(CUT_REASON, number, name)
    else:
        return True
    return False


def _find(page: Any, place: tuple[str, ...]) -> Any:
    for key in place:
        page = page.get(key) if isinstance(page, dict) else None
    return page


def _text(page: Any, place: tuple[str, ...]) -> str:
    found = _find(page, place)
    return found.strip() if isinstance(found, str) else ""


def _items(page: dict[str, Any], place: tuple[str, ...], number: int, log: ReadLog) -> list[str]:
    """Find a list of names; a page may lack it, but not hold something else there."""
    found = _find(page, place)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        log.reject(f"{'.'.join(place)} is not a list of names", number, str(found))
        return []
    return found


FORMAT = Format(recognise, read, languages_inside=False)
