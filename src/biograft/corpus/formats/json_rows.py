"""Objects of JSON files as records: what is none is rejected with its line, the rest goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from biograft.errors import FormatError
from biograft.sources.files import read_lines
from biograft.sources.format import Probe
from biograft.sources.json_text import decode_json
from biograft.sources.log import ReadLog

T = TypeVar("T")


class MalformedError(Exception):
    """A record is not what its format says."""


def read_objects(path: Path, log: ReadLog) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read the objects of JSON lines with the number of their line."""
    log.opened(path)
    for number, line in read_lines(path):
        if not line.strip():
            continue
        log.read()
        try:
            value = decode_json(line)
        except (ValueError, RecursionError) as error:
            log.reject("not JSON", number, f"{line[:40]} ({error})", path=path)
            continue
        if isinstance(value, dict):
            yield number, value
        else:
            log.reject("no object", number, line, path=path)


def first_object(probe: Probe) -> dict[str, Any]:
    """Give the object of a file's first line; empty if there is none."""
    for line in probe.lines(1):
        try:
            value = decode_json(line)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}
    return {}


def field(value: Any, key: str, kind: type[T], default: T | None = None) -> T:
    """Give a value of an object, which must be of a type; a missing one is the default."""
    if not isinstance(value, dict):
        raise MalformedError("expected an object")
    found = value.get(key, default)
    if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
        raise MalformedError(f"{key} is missing or no {_NAMES.get(kind, kind.__name__)}")
    return found


def fields(value: Any, key: str, kind: type[T]) -> list[T]:
    """Give a list of an object whose elements must be of a type; a missing one is empty."""
    found = field(value, key, list, [])
    if not all(isinstance(each, kind) for each in found):
        raise MalformedError(f"{key} holds what is no {_NAMES.get(kind, kind.__name__)}")
    return found


_NAMES: dict[type[Any], str] = {
    str: "text", int: "whole number", list: "list", dict: "object",
}  # fmt: skip


def refuse_empty(path: Path) -> FormatError:
    """Say that a file holds no JSON document of the format."""
    return FormatError("holds no list of documents", path=path, remedy="name the right format")
