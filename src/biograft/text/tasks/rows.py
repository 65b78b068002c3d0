"""Examples of Python as records: a list, a frame of pandas or polars, or a ``datasets.Dataset``.

Rows are records, dictionaries with the keys of biograft's JSON lines, or those that others use:
``label``, ``text`` and ``text_pair``, ``sentence1`` and ``sentence2``, ``tokens`` and ``ner_tags``.
A text alone is an example without labels, two texts are a pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from biograft.errors import ConfigError
from biograft.kb.sources.log import ReadLog
from biograft.text.documents import Document
from biograft.text.formats import jsonl as documents_jsonl
from biograft.text.formats.conll import tagged_sentence
from biograft.text.formats.format import MalformedError
from biograft.text.tasks.jsonl import from_json
from biograft.text.tasks.registry import KINDS, ClassExample, PairExample

DOCUMENT = "document"
_KEYS = {
    DOCUMENT: "text and mentions, or tokens and ner_tags",
    "pair": "first, second and label",
    "class": "text and label, or labels",
    "ranking": "query and candidates",
    "relation": "text, first, second and label",
}
_PAIRS = (("text", "text_pair"), ("sentence1", "sentence2"), ("premise", "hypothesis"))


def is_files(data: Any) -> bool:
    """Whether data are paths of files, not examples."""
    return isinstance(data, str | Path) or (
        isinstance(data, Sequence) and all(isinstance(each, str | Path) for each in data)
    )


def is_one(data: Any) -> bool:
    """Whether data are one example, not several."""
    is_pair = isinstance(data, tuple) and [*map(type, data)] == [str, str]
    return is_pair or isinstance(data, (str, Mapping, Document, *KINDS.values()))


def to_examples(kind: str, data: Iterable[Any], where: str = "examples") -> list[Any]:
    """Return the examples of rows; raise a ``ConfigError`` that says which keys are expected.

    Args:
        kind: Kind of the examples, such as ``pair``, or ``document``.
        data: Rows.
        where: Name of the data in errors.

    >>> to_examples("pair", [("one text", "another text")])[0].second
    'another text'
    """
    if kind not in _KEYS:  # of a task of others
        return [*data]
    record = Document if kind == DOCUMENT else KINDS[kind]
    if isinstance(data, list) and all(isinstance(row, record) for row in data):
        return data
    return convert_rows(data, partial(to_example, kind), _KEYS[kind], where)


def convert_rows(
    data: Any, convert: Callable[[Any, int], Any], expected: str, where: str
) -> list[Any]:
    """Convert each row; an error names the row, the keys that are expected, and those found.

    Args:
        data: Rows.
        convert: Takes a row and its number; raises a ``ValueError``.
        expected: The keys.
        where: Name of the data in errors.
    """
    converted = []
    for number, row in enumerate(plain_rows(data)):
        try:
            converted.append(convert(row, number))
        except ValueError as problem:
            found = (
                f"{problem}: {', '.join(map(str, row))}" if isinstance(row, Mapping) else problem
            )
            raise ConfigError(f"{where}: row {number}: expected {expected}; {found}") from problem
    return converted


def plain_rows(data: Any) -> list[Any]:
    """Return rows with values as JSON has them, without empty ones, and with names of labels."""
    names = _label_names(data)
    if hasattr(data, "to_dicts"):  # polars
        data = data.to_dicts()
    elif hasattr(data, "iterrows"):  # pandas
        data = data.to_dict("records")
    return [_plain(row, names) if isinstance(row, Mapping) else row for row in data]


def _plain(row: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    values = ((key, _named(value, names.get(key))) for key, value in row.items())
    return {key: value for key, value in values if not is_missing(value)}


def is_missing(value: Any) -> bool:
    """Whether a cell is None, NaN, or one of pandas' words for missing."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)


def _label_names(data: Any) -> dict[str, Any]:
    """Return the names of the labels that a ``datasets.Dataset`` has as numbers, by column."""
    features = getattr(data, "features", None) or {}
    inner = {key: getattr(each, "feature", each) for key, each in dict(features).items()}
    return {key: names for key, each in inner.items() if (names := getattr(each, "names", None))}


def to_example(kind: str, row: Any, number: int) -> Any:
    """Return the example of a row; a ``ValueError`` says what is wrong.

    Args:
        kind: Kind of the example.
        row: A record, or plain values.
        number: Number of the row.
    """
    if isinstance(row, Document if kind == DOCUMENT else KINDS[kind]):
        return row
    if isinstance(row, str) and kind in ("class", DOCUMENT):
        return ClassExample(row) if kind == "class" else Document(str(number), row)
    if kind == "pair" and isinstance(row, tuple | list) and [*map(type, row)] == [str, str]:
        return PairExample(*row)
    if not isinstance(row, Mapping):
        raise ValueError(f"found {type(row).__name__}")
    value = {**row}
    if kind == DOCUMENT:
        tags = value.get("ner_tags", value.get("tags"))
        if "tokens" in value and tags is not None:
            return tagged_sentence(str(value.get("id", number)), value["tokens"], tags)
        try:
            path = Path(str(number))
            return documents_jsonl.from_json({"id": str(number), **value}, ReadLog(path), path)
        except MalformedError as error:
            raise ValueError(str(error)) from error
    if "label" in value:
        value["label"] = str(value["label"])
    if kind == "class" and "label" in value:
        value["labels"] = [value.pop("label")]
    for first, second in _PAIRS if kind == "pair" else ():
        if first in value and second in value:
            value["first"], value["second"] = value.pop(first), value.pop(second)
    if "id" in value:
        value["id"] = str(value["id"])
    found, example = from_json(value)
    if found != kind:
        raise ValueError(f"found the keys of {found!r}")
    return example


def _named(value: Any, names: Sequence[str] | None) -> Any:
    """Return a value of a row as JSON has it, with the names of numbered labels."""
    if hasattr(value, "tolist"):  # numpy
        value = value.tolist()
    if names is None or is_missing(value):
        return value
    return [names[each] for each in value] if isinstance(value, list) else names[value]
