"""biograft's own JSON lines of concepts: reader of what ``kb export --format jsonl`` writes.

    {"id": "D003924", "name": "Diabetes Mellitus, Type 2", "type": "disease",
     "names": {"en": ["type 2 diabetes"], "zh": ["2型糖尿病"]},
     "definition": "A long-lasting disorder ...",
     "ids": [{"id": "OMIM:125853", "kind": "xref"}],
     "relations": {"is-a": ["D003920"]}}

Only ``id`` is required, with ``name`` or ``names``. The short forms above are for writing by hand;
the long forms keep everything: a name or a definition is text or ``{"text", "language", "kind",
"source"}``, a type is its code or ``{"type", "label", "tree"}``, and a relation in a list is
``{"relation", "tail", "source"}``. A folder of such files is read as one source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from biograft.errors import InputError
from biograft.kb.names import language_code
from biograft.kb.records import Facts, IdKind, NameKind, Record
from biograft.kb.sources.format import Format, Item, Probe, SourceConfig, look_at
from biograft.kb.sources.json_files import peek_object, read_objects
from biograft.kb.sources.log import ReadLog

KEYS = "id iri name names type types definition definitions ids relations".split()

_NAME_KINDS, _ID_KINDS = frozenset[str](NameKind), frozenset[str](IdKind)
_CUT = re.compile(r'\s*\{\s*"id"\s*:\s*".*?"names?"\s*:')
"""The beginning of a first line that is longer than the probe."""


_SUFFIXES = (".jsonl", ".jsonl.gz")


class _MalformedError(Exception):
    """A line is JSON but not a concept."""


def recognise(probe: Probe) -> bool:
    """JSON objects, one a line, each with an id and a name; or a folder of such files."""
    if probe.members:
        names = sorted(name for name in probe.members if name.endswith(_SUFFIXES))
        return bool(names) and recognise(look_at(probe.path / names[0]))
    if "\n" not in probe.text and _CUT.match(probe.text):
        return True
    values = [peek_object(line) for line in probe.lines(3)]
    return bool(values) and all("id" in v and {"name", "names"} & set(v) for v in values)


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield the facts of every line."""
    for path in _files(config.path):
        for row in read_objects(path, log, config.encoding):
            try:
                records = list(_concept(row.value, row.line, config))
            except _MalformedError as error:
                log.reject(str(error), row.line, row.text, path=path)
                continue
            _declare(row.value, log)
            log.define(records[0].concept, row.line, path=path)  # type: ignore[union-attr]
            yield from records


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(p for p in path.iterdir() if p.name.endswith(_SUFFIXES))
    if not files:
        raise InputError("holds no .jsonl file", path=path, remedy="name a folder that does")
    return files


def _concept(value: dict[str, Any], line: int, config: SourceConfig) -> Iterator[Record]:
    """Convert a JSON object into records."""
    if not isinstance(value.get("id"), str) or not value["id"].strip():
        raise _MalformedError("no id")
    for key in value:
        if key not in KEYS:
            raise _MalformedError(f"unknown key {key!r}")
    if not isinstance(value.get("iri", ""), str):
        raise _MalformedError("iri is no text")
    language = config.language or "en"
    facts = Facts(value["id"].strip(), line, language)
    yield facts.exists()
    if "name" in value:
        yield facts.name(_text(value["name"]), NameKind.PREFERRED)
    own = language if "name" in value else ""
    for text, tag, kind, source in _texts(value.get("names", ()), language, own):
        yield facts.name(text, _kind(kind or "synonym", _NAME_KINDS), tag, source)
    definitions = value.get("definitions", ())
    short = [value["definition"]] if "definition" in value else []
    for text, tag, _, source in [*_texts(short, language), *_texts(definitions, language)]:
        yield facts.definition(text, tag, source)
    types = [*([value["type"]] if "type" in value else []), *_list(value.get("types", ()))]
    for item in types or filter(None, [config.default_type]):
        type_fields = ("type", "label", "tree")
        fields = {"type": item} if isinstance(item, str) else _fields(item, type_fields)
        yield facts.type(_text(fields.get("type")), fields.get("label", ""), fields.get("tree", ""))
    for item in _list(value.get("ids", ())):
        further = {"id": item} if isinstance(item, str) else _fields(item, ("id", "kind"))
        kind = _kind(further.get("kind", "alternate"), _ID_KINDS)
        yield facts.id(_text(further.get("id")), kind)
    relations = value.get("relations", ())
    if isinstance(relations, dict):
        for relation, tails in relations.items():
            for tail in _list(tails):
                yield facts.relation(_text(relation), _text(tail))
        return
    for item in _list(relations):
        fields = _fields(item, ("relation", "tail", "source"))
        relation, tail = _text(fields.get("relation")), _text(fields.get("tail"))
        yield facts.relation(relation, tail, fields.get("source", ""))


def _declare(value: dict[str, Any], log: ReadLog) -> None:
    """Note the namespace of a concept's prefix."""
    prefix, _, local = value["id"].strip().partition(":")
    iri = value.get("iri", "")
    if local and iri.endswith(local):
        log.iris.declare(prefix, iri.removesuffix(local))


def _texts(value: Any, language: str, own: str = "") -> Iterator[tuple[str, str, str, str]]:
    """Yield names or definitions as (text, language, kind, source).

    In the short form the first name of a language is its preferred one, but not in the language
    of the concept's ``own`` name.
    """
    if isinstance(value, dict):
        for tag, texts in value.items():
            code = language_code(tag)
            for k, text in enumerate(_list(texts)):
                kind = NameKind.PREFERRED if k == 0 and code != own else ""
                yield _text(text), code, kind, ""
        return
    for item in _list(value):
        if isinstance(item, str):
            yield _text(item), language, "", ""
        else:
            fields = _fields(item, ("text", "language", "kind", "source"))
            tag = language_code(fields.get("language", language))
            yield _text(fields.get("text")), tag, fields.get("kind", ""), fields.get("source", "")


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise _MalformedError(f"expected a list, found {_excerpt(value)}")
    return list(value)


def _excerpt(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)[:40]
    except RecursionError:  # as deep as can be read, but not a step deeper
        return "lists in lists"


def _fields(value: Any, known: tuple[str, ...]) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise _MalformedError(f"expected text or an object with {', '.join(known)}")
    for key in value:
        if key not in known:
            raise _MalformedError(f"unknown key {key!r}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _MalformedError("a text is empty or missing")
    return value.strip()


def _kind(value: str, kinds: frozenset[str]) -> str:
    if value not in kinds:
        raise _MalformedError(f"unknown kind {value!r}")
    return value


FORMAT = Format(recognise, read)
