"""JSON lines of task files: one object a line, a broken line told and passed over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from biograft.sources.files import read_lines
from biograft.sources.json_text import decode_json

if TYPE_CHECKING:
    from biograft.corpus.tasks.format import TaskConfig
    from biograft.sources.log import ReadLog


@dataclass(frozen=True, slots=True)
class JsonRow:
    """An object and the line it stands in."""

    line: int
    value: dict[str, Any]
    text: str


def read_objects(config: TaskConfig, log: ReadLog) -> Iterator[JsonRow]:
    """Read the objects of a file; lines that hold none are rejected."""
    log.opened(config.path)
    for number, line in read_lines(config.path, config.encoding):
        if not line.strip():
            continue
        log.read()
        try:
            value = decode_json(line)
        except (ValueError, RecursionError):
            log.reject("not JSON", number, line)
            continue
        if isinstance(value, dict):
            yield JsonRow(number, value, line)
        else:
            log.reject("not a JSON object", number, line)
