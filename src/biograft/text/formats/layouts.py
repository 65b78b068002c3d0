"""Annotated documents in JSON by a declared layout: reader and writer.

``layouts.toml`` declares CMeEE and the named entities of ChineseBLUE, and says what each key means;
a TOML file with the same keys declares a format of your own.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from biograft.config import Config, from_mapping, load_toml
from biograft.errors import ConfigError
from biograft.kb.names import whole_number
from biograft.kb.sources.format import Probe
from biograft.kb.sources.json_files import read_objects
from biograft.kb.sources.log import ReadLog
from biograft.text.documents import Document, Mention
from biograft.text.formats.format import (
    LAYOUTS_FILE,
    DocumentFormat,
    Feature,
    MalformedError,
    OffsetChecker,
    field,
    fields,
    file_writer,
    first_object,
    join_ids,
    split_ids,
)

Key = str | int


@dataclass(frozen=True, kw_only=True)
class DocumentLayout(Config):
    """The keys of documents and of their mentions."""

    about: str = ""
    list: bool = False
    id: str = ""
    text: str
    mentions: str
    start: Key
    end: Key | None = None
    mention: Key | None = None
    type: Key | None = None
    concepts: Key | None = None
    inclusive: bool = False
    as_text: bool = False
    none: str = ""

    def __post_init__(self) -> None:
        if self.end is None and self.mention is None:
            raise ConfigError("end: a mention needs its end, or its text as mention")

    def format(self, keys: Iterable[str]) -> DocumentFormat:
        """Return the format of files with this layout.

        Args:
            keys: The keys of the layout in the order of its declaration.
        """
        holds = {Feature.NESTING}
        for feature, key in (
            (Feature.DOCUMENT_IDS, self.id or None),
            (Feature.TYPES, self.type),
            (Feature.CONCEPTS, self.concepts),
        ):
            holds |= {feature} if key is not None else set()
        order = [each for each in keys if each in _OF_MENTIONS]
        marks = ("[", ",", "\n]\n") if self.list else ()

        return DocumentFormat(
            recognise=self._recognise,
            read=lambda path, log: _read(self, path, log),
            write=file_writer(partial(_render, self, order), *marks),
            holds=frozenset(holds),
        )

    def _recognise(self, probe: Probe) -> bool:
        """Whether a file begins with a document of these keys."""
        if self.list:
            text = probe.text
            keys = (f'"{self.mentions}"', f'"{self.text}"')
            return bool(re.match(r"\s*\[\s*\{", text)) and all(key in text for key in keys)
        value = first_object(probe)
        mentions = value.get(self.mentions)
        needed = [key for key in (self.start, self.end, self.type) if key is not None]
        return (
            self.text in value
            and isinstance(mentions, list)
            and all(_has(each, needed) for each in mentions)
        )


_OF_MENTIONS = ("mention", "start", "end", "type", "concepts")


def _has(entry: Any, keys: list[Key]) -> bool:
    if isinstance(entry, dict):
        return all(key in entry for key in keys)
    return isinstance(entry, list) and all(isinstance(k, int) and k < len(entry) for k in keys)


def _read(layout: DocumentLayout, path: Path, log: ReadLog) -> Iterator[Document]:
    """Read the documents; those without an id are numbered from 1."""
    known = {layout.text, layout.mentions, layout.id}
    for number, record in enumerate(read_objects(path, log), 1):
        try:
            checker = OffsetChecker(field(record.value, layout.text, str), log, path)
            entries = fields(record.value, layout.mentions, object)
            mentions = [_mention(layout, each, checker, record.line) for each in entries]
            identifier = record.value.get(layout.id, "") if layout.id else number
            if not isinstance(identifier, str | int):
                raise MalformedError(f"{layout.id} is no text")
        except MalformedError as error:
            log.reject(str(error), record.line, record.text, path=path)
            continue
        for key in record.value.keys() - known:
            log.filter(key)
        valid = tuple(mention for mention in mentions if mention is not None)
        yield Document(str(identifier), checker.text, valid)


def _mention(
    layout: DocumentLayout, entry: Any, checker: OffsetChecker, line: int
) -> Mention | None:
    values = entry if isinstance(entry, dict) else dict(enumerate(entry or ()))
    written = None if layout.mention is None else field(values, layout.mention, str)
    start = _offset(values, layout.start)
    if layout.end is None:
        end = start + len(written or "")
    else:
        end = _offset(values, layout.end) + layout.inclusive
    mention = checker.mention(((start, end),), written, line)
    if mention is None:
        return None
    kind = "" if layout.type is None else field(values, layout.type, str, "")
    ids = "" if layout.concepts is None else values.get(layout.concepts)
    concepts = split_ids(ids) if isinstance(ids, str) and ids != layout.none else ()
    return replace(mention, type=kind, concepts=concepts)


def _offset(values: dict[Any, Any], key: Key) -> int:
    value = values.get(key)
    is_number = isinstance(value, str | int) and not isinstance(value, bool)
    offset = whole_number(str(value)) if is_number else None
    if offset is None:
        raise MalformedError(f"{key} is missing or no whole number")
    return offset


def _render(layout: DocumentLayout, order: list[str], document: Document) -> str:
    """Return a document: a line, or an entry of a list."""
    value: dict[str, Any] = {layout.id: document.id} if layout.id else {}
    value[layout.text] = document.text
    value[layout.mentions] = [_entry(layout, order, each, document) for each in document.mentions]
    line = json.dumps(value, ensure_ascii=False)
    return f"\n{line}" if layout.list else f"{line}\n"


def _entry(layout: DocumentLayout, order: list[str], mention: Mention, document: Document) -> Any:
    offset = str if layout.as_text else int
    values: dict[str, Any] = {
        "mention": mention.text,
        "start": offset(mention.start),
        "end": offset(mention.end - layout.inclusive),
        "type": mention.type,
        "concepts": join_ids(mention.concepts, document, "concept"),
    }
    keys = {getattr(layout, name): values[name] for name in order}
    if not mention.concepts and layout.concepts is not None:
        del keys[layout.concepts]
    if isinstance(layout.start, int):
        return [keys[position] for position in sorted(keys)]
    return keys


def _layout(values: dict[str, Any], where: str) -> DocumentFormat:
    return from_mapping(DocumentLayout, values, where).format(values)


def read_layout(path: Path) -> DocumentFormat:
    """Read the layout of documents of your own from a TOML file.

    Args:
        path: A file with the keys of ``layouts.toml``.
    """
    return _layout(load_toml(path), f"{path.name}: ")


LAYOUTS = SimpleNamespace(
    **{
        name: _layout(values, f"{name}.")
        for name, values in tomllib.loads(LAYOUTS_FILE.read_text("utf-8")).items()
    }
)
"""The formats of published data sets, by name."""
