"""biograft's own JSON lines of task examples: reader and writer for all kinds.

The keys of a line are the fields of its record; default values are omitted. A file holds one kind,
which its keys determine: ``candidates`` (ranking), ``first`` as an object (relation), ``first``
(pair), else ``text`` (class).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biograft.artifacts import write_lines
from biograft.kb.sources.json_files import peek_object, read_objects
from biograft.text.documents import Mention
from biograft.text.tasks.registry import KINDS, Answer, Example, TaskConfig, TaskFormat, by_lines

if TYPE_CHECKING:
    from biograft.kb.sources.log import ReadLog

_FIELDS: dict[str, dict[str, Field[Any]]] = {
    record.__name__: {field.name: field for field in fields(record)}
    for record in (*KINDS.values(), Answer, Mention)
}
"""The fields of each record, cached since ``fields`` is slow."""


def write_examples(examples: Iterable[Example], path: Path, *, overwrite: bool = False) -> int:
    """Write examples, one per line; return their number.

    Args:
        examples: Examples of any task.
        path: File to write.
        overwrite: Replace a file that exists.
    """
    lines = (json.dumps(to_json(example), ensure_ascii=False) for example in examples)
    return write_lines(path, lines, overwrite=overwrite)


def read(config: TaskConfig, log: ReadLog) -> Iterator[Example]:
    """Read the examples of a file, which must be of the kind of the first.

    Args:
        config: File, and how it is read.
        log: Counts records read, and rejected by reason.
    """
    kind = ""
    for row in read_objects(config.path, log, config.encoding):
        try:
            own_kind, example = from_json(row.value)
        except _InvalidExampleError as problem:
            log.reject(str(problem), row.line, row.text)
            continue
        kind = kind or own_kind
        if own_kind == kind:
            yield example
        else:
            log.reject(f"a {own_kind} in a file of kind {kind}", row.line, row.text)


def to_json(record: Example | Answer | Mention) -> dict[str, Any]:
    """Return the fields of a record, without default values."""
    value = {}
    for name, field in _FIELDS[type(record).__name__].items():
        content = getattr(record, name)
        if content != field.default:
            value[name] = _plain(content)
    return value


def from_json(value: Mapping[str, Any]) -> tuple[str, Example]:
    """Return the kind of a JSON object and its example."""
    kind = _kind(value)
    taken = dict(value)
    if kind == "ranking":
        candidates = taken["candidates"]
        if not isinstance(candidates, list):
            raise _InvalidExampleError("candidates is not a list")
        taken["candidates"] = tuple(_record(Answer, answer) for answer in candidates)
    if kind == "relation":
        for role in ("first", "second"):
            taken[role] = _mention(taken.get(role), taken.get("text"))
    return kind, _record(KINDS[kind], taken)


class _InvalidExampleError(ValueError):
    """A JSON object is no valid example."""


def _kind(value: Mapping[str, Any]) -> str:
    if "candidates" in value:
        return "ranking"
    if "first" in value:
        return "relation" if isinstance(value["first"], dict) else "pair"
    if "text" in value:
        return "class"
    raise _InvalidExampleError("no key of an example: candidates, first or text")


def _record(record: type[Any], value: Any) -> Any:
    """Make a record of a JSON object, whose values must have the types of the fields."""
    if not isinstance(value, dict):
        raise _InvalidExampleError(f"not an object of a {record.__name__}")
    known = _FIELDS[record.__name__]
    if stray := [key for key in value if key not in known]:
        raise _InvalidExampleError(f"the key {stray[0]!r} is unknown")
    for name, field in known.items():
        if name not in value and field.default is MISSING:
            raise _InvalidExampleError(f"the key {name!r} is missing")
    return record(**{key: _checked(key, known[key].type, v) for key, v in value.items()})


def _checked(key: str, annotation: Any, value: Any) -> Any:
    """Return a value, checked to have the type of its field."""
    expected = {"str": str, "int": int, "bool": bool}.get(str(annotation))
    if expected is not None:
        # True is an int to Python, but not to a reader of JSON
        if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
            raise _InvalidExampleError(f"{key} is not a {expected.__name__}")
        return value
    if str(annotation) == "tuple[str, ...]":
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise _InvalidExampleError(f"{key} is not a list of str")
        return tuple(value)
    return value


def _mention(value: Any, text: Any) -> Mention:
    """Make a mention, checked to match its text."""
    fragments: Any = value.get("fragments", []) if isinstance(value, dict) else []
    if not isinstance(fragments, list) or not all(_is_span(each) for each in fragments):
        raise _InvalidExampleError("fragments is not a list of start and end")
    values = {**value, "fragments": tuple(map(tuple, fragments))} if fragments else value
    mention: Mention = _record(Mention, values)
    spans = mention.spans
    outer = (min(start for start, _ in spans), max(end for _, end in spans))
    if not isinstance(text, str) or outer != (mention.start, mention.end):
        raise _InvalidExampleError("a mention whose fragments do not begin and end with it")
    inside = all(0 <= start < end <= len(text) for start, end in spans)
    if not inside or " ".join(text[start:end] for start, end in spans) != mention.text:
        raise _InvalidExampleError("a mention that is not at its offsets")
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
