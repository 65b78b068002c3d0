"""BioSyn dictionary reader: ``id||name`` per line, where the id may be ``A|B`` (several ids).

The text before the bars is the concept: ``A|B`` and ``A|C`` are two concepts although they share an
id, as in the published evaluation. Each single id becomes an alternate id. ``CUI-less`` lines are
filtered, as in the published evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator

from biograft.kb.records import Facts
from biograft.kb.sources.files import read_lines
from biograft.kb.sources.format import Format, Item, Probe, SourceConfig
from biograft.kb.sources.log import ReadLog

SEPARATOR = "||"


def recognise(probe: Probe) -> bool:
    """Every line has exactly one ``||`` and no bar on its right."""
    parts = [line.split(SEPARATOR) for line in probe.lines()]
    return bool(parts) and all(len(p) == 2 and p[0].strip() and "|" not in p[1] for p in parts)


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield a name for every line, and the further ids of each concept once.

    Args:
        config: File, and options of ``kb build``.
        log: Counts records read, and what is rejected, doubtful or filtered.
    """
    described: set[str] = set()
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
        parts = [part.strip() for part in ids.split("|") if part.strip()]
        concept = "|".join(parts)
        facts = Facts(concept, number, config.language or "en")
        yield facts.name(name)
        if concept in described:
            continue
        described.add(concept)
        if config.default_type:
            yield facts.type(config.default_type)
        if len(parts) > 1:
            yield from map(facts.id, parts)


FORMAT = Format(recognise, read, tabular=True)
