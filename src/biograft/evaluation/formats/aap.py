"""AskAPatient: concept id, concept name and a patient's phrase, separated by tabs.

Files of the corpus are in Windows-1252 where they are not plain ASCII.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from biograft.errors import EncodingError
from biograft.evaluation.queries import GoldConfig, LinkQuery, gold_ids
from biograft.sources.files import read_lines
from biograft.sources.log import ReadLog


def read(path: str, config: GoldConfig, log: ReadLog) -> Iterator[LinkQuery]:
    """Read queries in the order of the lines."""
    for number, line in _lines(Path(path)):
        if not line.strip():
            continue
        log.read()
        cells = line.split("\t")
        if len(cells) != 3 or not cells[2].strip():
            log.reject("not of the form id, name, phrase (tabs between)", number, line)
            continue
        yield LinkQuery(cells[2].strip(), frozenset(gold_ids([cells[0]])))


def _lines(path: Path) -> list[tuple[int, str]]:
    try:
        return list(read_lines(path))
    except EncodingError:
        return list(read_lines(path, "cp1252"))
