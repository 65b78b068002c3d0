"""Ids and labels in JSON and YAML: the keys of one object, such as ``id`` and ``label``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from biograft.errors import FormatError
from biograft.kb.verify.pairs import Pair, PairFinder, SourceText, pair_keys
from biograft.kb.vocabularies import vocabulary_of_system

_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


@dataclass(slots=True)
class _Object:
    """An object or a list of JSON or YAML: its texts, and the key under which it stands."""

    is_list: bool
    name: str
    path: str
    texts: list[tuple[str, str, int, int]] = field(default_factory=list)
    """Key, text, and where it stands."""


def json_pairs(source: SourceText, finder: PairFinder) -> Iterator[Pair]:
    """Walk the tokens of a text of any number of JSON values; texts keep their places.

    Args:
        source: The file.
        finder: What is looked for.

    Raises:
        FormatError: The text is not JSON.
    """
    stack = [_Object(True, "", "")]
    key: str | None = None
    for match in _JSON_TOKEN.finditer(source.text):
        token = match[0]
        first = token[0]
        if first == '"':
            text, holder = _unescaped(token), stack[-1]
            if key is None and not holder.is_list:
                key = text
                continue
            holder.texts.append((key or holder.name, text, match.start() + 1, match.end() - 1))
            key = None
        elif first in "{[":
            above = stack[-1]
            path = f"{above.path}.{key}" if key else above.path
            stack.append(_Object(first == "[", key or above.name, path))
            key = None
        elif first in "}]":
            if len(stack) == 1 or stack[-1].is_list != (first == "]"):
                line, _ = source.place(match.start())
                raise FormatError(
                    "is not JSON", path=source.path, line=line, remedy="check the brackets"
                )
            yield from _of_object(stack.pop(), finder)
            key = None
        elif first not in ",:":
            key = None
    if len(stack) > 1:
        raise FormatError("the JSON is cut short", path=source.path, remedy="fetch the file again")


def _unescaped(token: str) -> str:
    if "\\" not in token:
        return token[1:-1]
    try:
        return str(json.loads(token))
    except ValueError:
        return token[1:-1]


def yaml_pairs(source: SourceText, finder: PairFinder) -> Iterator[Pair]:
    """Walk the nodes of YAML documents.

    Args:
        source: The file.
        finder: What is looked for.

    Raises:
        FormatError: The text is not YAML.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        for document in yaml.compose_all(source.text, loader):
            yield from _node(document, "", "", finder)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise FormatError(
            f"is not YAML ({getattr(error, 'problem', None) or error})",
            path=source.path,
            line=mark.line + 1 if mark else None,
            remedy="check the indentation and the quotes",
        ) from error


def _node(node: Any, name: str, path: str, finder: PairFinder) -> Iterator[Pair]:
    value = _Object(node.id == "sequence", name, path)
    below: list[tuple[Any, str]] = []
    if node.id == "scalar":
        value.is_list = True
        value.texts.append(_scalar(name, node))
    elif node.id == "sequence":
        for each in node.value:
            if each.id == "scalar":
                value.texts.append(_scalar(name, each))
            else:
                below.append((each, name))
    else:
        for key, each in node.value:
            if each.id == "scalar":
                value.texts.append(_scalar(str(key.value), each))
            else:
                below.append((each, str(key.value)))
    yield from _of_object(value, finder)
    for each, key in below:
        inner = f"{path}.{key}" if node.id == "mapping" else path
        yield from _node(each, key, inner, finder)


def _scalar(name: str, node: Any) -> tuple[str, str, int, int]:
    start, end = node.start_mark.index, node.end_mark.index
    if node.style in ("'", '"'):
        start, end = start + 1, end - 1
    elif node.style in ("|", ">"):  # a block, which is not rewritten
        end = start
    return name, str(node.value), start, end


def _of_object(value: _Object, finder: PairFinder) -> Iterator[Pair]:
    """Yield the pairs of the texts of an object, then ids without a label."""
    if value.is_list:
        for name, text, start, end in value.texts:
            if finder.is_id(text):
                yield Pair(text, "", start, end, column=name)
        return
    texts = {name: (text, start, end) for name, text, start, end in value.texts}
    paired: set[str] = set()
    for one, other in _paired_keys(value, texts, finder.columns):
        text, start, end = texts[one]
        label = texts.get(other, ("", -1, -1)) if other else ("", -1, -1)
        system = texts.get("system")
        if one == "code" and system and (known := vocabulary_of_system(system[0])):
            text = text if ":" in text else f"{known}:{text}"
        paired.add(one)
        if finder.is_id(text):
            yield Pair(text, label[0].strip(), start, end, *label[1:], column=one)
    for name, (text, start, end) in texts.items():
        if name not in paired and ":" in text and finder.is_id(text):
            yield Pair(text, "", start, end, column=name)


def _paired_keys(
    value: _Object, texts: Mapping[str, Any], columns: Mapping[str, str]
) -> Sequence[tuple[str, str]]:
    if not columns:
        return pair_keys(tuple(texts))
    wanted = {role: path.rpartition(".") for role, path in columns.items()}
    above, _, name = wanted["id"]
    inside = not above or f"{value.path}.".endswith(f".{above}.") or value.path == above
    if not inside or name not in texts:
        return ()
    return ((name, wanted["label"][2] if "label" in wanted else ""),)
