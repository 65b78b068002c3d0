"""Examples as JSON lines: the form in which all kinds can be written, and one's own data kept.

The keys of a line are the fields of its record; those that hold their default are left out. A
file holds one kind, told by the keys: ``candidates`` (ranking), ``first`` as an object
(relation), ``first`` (pair), else ``text`` (class).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biograft.artifacts import new_file
from biograft.corpus.tasks.records import KINDS, Answer, Example
from biograft.corpus.tasks.registry import TaskConfig, TaskFormat, by_lines
from biograft.documents import Mention
from biograft.sources.json_files import peek_object, read_objects

if TYPE_CHECKING:
    from biograft.sources.log import ReadLog

_FIELDS: dict[str, dict[str, Field[Any]]] = {
    record.__name__: {field.name: field for field in fields(record)}
    for record in (*KINDS.values(), Answer, Mention)
}
"""The fields of each record; looking them up for every line would take half the time."""


def write_examples(examples: Iterable[Example], path: Path, *, overwrite: bool = False) -> int:
    """Write examples, one a line; says how many."""
    n = 0
    with new_file(path, overwrite=overwrite) as file:
        for example in examples:
            file.write(json.dumps(to_json(example), ensure_ascii=False).encode() + b"\n")
            n += 1
    return n


def read(config: TaskConfig, log: ReadLog) -> Iterator[Example]:
    """Read the examples of a file, all of the kind of its first."""
    kind = ""
    for row in read_objects(config.path, log, config.encoding):
        try:
            found, example = from_json(row.value)
        except _NoExampleError as problem:
            log.reject(str(problem), row.line, row.text)
            continue
        kind = kind or found
        if found == kind:
            yield example
        else:
            log.reject(f"a {found} in a file of kind {kind}", row.line, row.text)


def to_json(record: Example | Answer | Mention) -> dict[str, Any]:
    """Give the fields of a record that do not hold their default."""
    value = {}
    for name, field in _FIELDS[type(record).__name__].items():
        content = getattr(record, name)
        if content != field.default:
            value[name] = _plain(content)
    return value


def from_json(value: Mapping[str, Any]) -> tuple[str, Example]:
    """Make an example of an object, and say its kind."""
    kind = _kind(value)
    taken = dict(value)
    if kind == "ranking":
        candidates = taken["candidates"]
        if not isinstance(candidates, list):
            raise _NoExampleError("candidates is not a list")
        taken["candidates"] = tuple(_record(Answer, answer) for answer in candidates)
    if kind == "relation":
        for role in ("first", "second"):
            taken[role] = _mention(taken.get(role), taken.get("text"))
    return kind, _record(KINDS[kind], taken)


class _NoExampleError(ValueError):
    """An object that is no example; says why."""


def _kind(value: Mapping[str, Any]) -> str:
    if "candidates" in value:
        return "ranking"
    if "first" in value:
        return "relation" if isinstance(value["first"], dict) else "pair"
    if "text" in value:
        return "class"
    raise _NoExampleError("no key of an example: candidates, first or text")


def _record(record: type[Any], value: Any) -> Any:
    """Make a record of an object whose values have the types of its fields."""
    if not isinstance(value, dict):
        raise _NoExampleError(f"not an object of a {record.__name__}")
    known = _FIELDS[record.__name__]
    if stray := [key for key in value if key not in known]:
        raise _NoExampleError(f"the key {stray[0]!r} is unknown")
    for name, field in known.items():
        if name not in value and field.default is MISSING:
            raise _NoExampleError(f"the key {name!r} is missing")
    return record(**{key: _checked(key, known[key].type, v) for key, v in value.items()})


def _checked(key: str, annotation: Any, value: Any) -> Any:
    """Refuse a value of another type than the field's."""
    expected = {"str": str, "int": int, "bool": bool}.get(str(annotation))
    if expected is not None:
        # True is an int to Python, but not to a reader of JSON
        if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
            raise _NoExampleError(f"{key} is not a {expected.__name__}")
        return value
    if str(annotation) == "tuple[str, ...]":
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise _NoExampleError(f"{key} is not a list of str")
        return tuple(value)
    return value


def _mention(value: Any, text: Any) -> Mention:
    """Make a mention that stands in its text."""
    pieces: Any = value.get("pieces", []) if isinstance(value, dict) else []
    if not isinstance(pieces, list) or not all(_is_span(piece) for piece in pieces):
        raise _NoExampleError("pieces is not a list of start and end")
    given = {**value, "pieces": tuple(map(tuple, pieces))} if pieces else value
    mention: Mention = _record(Mention, given)
    spans = mention.spans
    outer = (min(start for start, _ in spans), max(end for _, end in spans))
    if not isinstance(text, str) or outer != (mention.start, mention.end):
        raise _NoExampleError("a mention whose pieces do not begin and end with it")
    inside = all(0 <= start < end <= len(text) for start, end in spans)
    if not inside or " ".join(text[start:end] for start, end in spans) != mention.text:
        raise _NoExampleError("a mention that does not stand at its offsets")
    return mention


def _is_span(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(type(n) is int for n in value)


def _plain(content: Any) -> Any:
    if isinstance(content, Answer | Mention):
        return to_json(content)
    return list(map(_plain, content)) if isinstance(content, tuple) else content


def _fits(lines: list[str]) -> bool:
    keys = {field.name for record in KINDS.values() for field in fields(record)}
    value = peek_object(lines[0])
    return bool(value) and set(value) <= keys


FORMAT = TaskFormat("", read, by_lines(_fits))
