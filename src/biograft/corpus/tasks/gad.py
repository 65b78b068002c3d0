"""GAD, and BLURB's other relation files: id, sentence with indicators, label; tabs between.

The mentions are replaced by indicators already (``@GENE$``, ``@DISEASE$``), which become the
spans; two mentions that overlap are one indicator of both, such as ``@DRUG-DRUG$``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from biograft.corpus.tasks.format import TaskConfig, TaskFormat, by_lines
from biograft.corpus.tasks.records import RelationExample
from biograft.corpus.tasks.rows import read_tabbed
from biograft.documents import Mention

if TYPE_CHECKING:
    from biograft.sources.log import ReadLog

HEADER = "index\tsentence\tlabel"
_INDICATOR = re.compile(r"@([A-Z]+)(?:-([A-Z]+))?\$")


def read(config: TaskConfig, log: ReadLog) -> Iterator[RelationExample]:
    """Read sentences in the order of the lines."""
    for row in read_tabbed(config, log, 3, "id, sentence, label"):
        identifier, sentence, label = row.cells
        if row.line == 1 and row.text == HEADER:
            log.n_read -= 1
        elif not label.strip():
            log.reject("label is blank", row.line, row.text)
        elif len(mentions := _mentions(sentence)) != 2:
            log.reject(f"{len(mentions)} indicators such as @GENE$, expected 2", row.line, row.text)
        else:
            first, second = mentions
            yield RelationExample(sentence, first, second, label.strip(), id=identifier.strip())


def _mentions(sentence: str) -> list[Mention]:
    return [
        Mention(found.start(), found.end(), found[0], type=kind)
        for found in _INDICATOR.finditer(sentence)
        for kind in found.groups()
        if kind
    ]


def _fits(lines: list[str]) -> bool:
    return (lines[0] == HEADER or len(lines[0].split("\t")) == 3) and all(
        _INDICATOR.search(line) for line in lines if line != HEADER
    )


FORMAT = TaskFormat("relation", read, by_lines(_fits))
