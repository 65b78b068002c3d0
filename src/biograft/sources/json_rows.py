"""JSON lines: one object a line; a line that holds none is rejected, the rest goes on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biograft.sources.files import read_lines
from biograft.sources.json_text import decode_json
from biograft.sources.log import ReadLog


@dataclass(frozen=True, slots=True)
class JsonRow:
    """An object, the line it stands in, and the text of that line."""

    line: int
    value: dict[str, Any]
    text: str


def read_objects(path: Path, log: ReadLog, encoding: str = "utf-8") -> Iterator[JsonRow]:
    """Read the objects of a file; lines that hold none are rejected."""
    log.opened(path)
    for number, line in read_lines(path, encoding):
        if not line.strip():
            continue
        log.read()
        try:
            value = decode_json(line)
        except UnicodeEncodeError:
            log.reject("holds half a surrogate pair", number, line, path=path)
        except (ValueError, RecursionError) as error:
            log.reject("not JSON", number, f"{line[:40]} ({error})", path=path)
        else:
            if isinstance(value, dict):
                yield JsonRow(number, value, line)
            else:
                log.reject("not a JSON object", number, line, path=path)
