"""Question pairs: label, first text, second text, with tabs between and no quoting.

cMedQQ is written so (1: the same question). cMedQNLI is read in the same form.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from biograft.corpus.tasks.format import TaskConfig, TaskFormat
from biograft.corpus.tasks.records import PairExample
from biograft.corpus.tasks.rows import read_tabbed

if TYPE_CHECKING:
    from biograft.sources.log import ReadLog


def read(config: TaskConfig, log: ReadLog) -> Iterator[PairExample]:
    """Read pairs in the order of the lines."""
    for row in read_tabbed(config, log, 3, "label, text, text"):
        label, first, second = row.cells
        if not (label.strip() and first.strip() and second.strip()):
            log.reject("label or text is blank", row.line, row.text)
            continue
        yield PairExample(first, second, label.strip())


FORMAT = TaskFormat("pair", read)
