"""scispaCy knowledge base reader: a JSON list, or JSON lines, of concepts with aliases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from biograft.kb.records import Facts
from biograft.kb.sources.format import Format, Item, Probe, SourceConfig
from biograft.kb.sources.json_files import read_objects
from biograft.kb.sources.log import ReadLog


def recognise(probe: Probe) -> bool:
    """The two keys of every concept near the start."""
    start = probe.text[:8192].lstrip()
    return start[:1] in ("[", "{") and '"concept_id"' in start and '"canonical_name"' in probe.text


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield the name, aliases, types and definition of every concept."""
    for row in read_objects(config.path, log, config.encoding):
        line, value = row.line, row.value
        concept = value.get("concept_id")
        if not isinstance(concept, str) or not concept:
            log.reject("no concept_id", line, row.text)
            continue
        if not isinstance(value.get("canonical_name"), str) or not value["canonical_name"].strip():
            log.reject("no canonical_name", line, concept)
            continue
        facts = Facts(concept, line, config.language or "en")
        names = [value["canonical_name"], *_strings(value.get("aliases"))]
        yield from facts.names(names, is_new=log.define(concept, line))
        for code in _strings(value.get("types")) or [config.default_type]:
            if code:
                yield facts.type(code)
        for definition in _strings([value.get("definition")]):
            yield facts.definition(definition)


def _strings(value: Any) -> list[str]:
    return [v for v in value if isinstance(v, str) and v.strip()] if isinstance(value, list) else []


FORMAT = Format(recognise, read)
