"""BioSyn dictionaries: ``id||name`` a line, where the id may be ``A|B`` (several ids).

``CUI-less`` lines name nothing and are filtered, as the published evaluation does.
"""

from __future__ import annotations

from collections.abc import Iterator

from biograft.records import IdRecord, NameRecord, TypeRecord
from biograft.sources.files import read_lines
from biograft.sources.format import Format, Item, Probe, SourceConfig
from biograft.sources.log import ReadLog

SEPARATOR = "||"


def recognise(probe: Probe) -> bool:
    """Every line has exactly one ``||`` and no bar on its right."""
    parts = [line.split(SEPARATOR) for line in probe.lines()]
    return bool(parts) and all(len(p) == 2 and p[0].strip() and "|" not in p[1] for p in parts)


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield a name for every line, and the further ids of each concept once."""
    log.opened(config.path)
    linked: set[str] = set()
    typed: set[str] = set()
    for number, line in read_lines(config.path, config.encoding):
        if not line.strip():
            continue
        log.read()
        ids, separator, name = line.partition(SEPARATOR)
        ids, name = ids.strip(), name.strip()
        if not separator or not ids.strip("| ") or not name:
            log.reject("not of the form id||name", number, line)
            continue
        if ids.lower() == "cui-less":
            log.filter("CUI-less")
            continue
        concept, *others = [part.strip() for part in ids.split("|") if part.strip()]
        yield NameRecord(concept, name, config.language or "en", line=number)
        if config.default_type and concept not in typed:
            typed.add(concept)
            yield TypeRecord(concept, config.default_type, line=number)
        if others and ids not in linked:
            linked.add(ids)
            yield from (IdRecord(concept, other, line=number) for other in others)


FORMAT = Format(recognise, read, tabular=True)
