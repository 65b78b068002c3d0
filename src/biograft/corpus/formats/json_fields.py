"""Fields of JSON objects, of the types that a format says they have."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from biograft.errors import FormatError
from biograft.sources.format import Probe
from biograft.sources.json_text import peek_object

T = TypeVar("T")


class MalformedError(Exception):
    """A record is not what its format says."""


def first_object(probe: Probe) -> dict[str, Any]:
    """Give the object of a file's first line; empty if there is none."""
    return peek_object(next(iter(probe.lines(1)), ""))


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
