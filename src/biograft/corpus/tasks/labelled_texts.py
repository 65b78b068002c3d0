"""Texts with one class each: class, text, with a tab between and no quoting (cMedTC, cMedIC)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from biograft.corpus.tasks.format import TaskConfig, TaskFormat
from biograft.corpus.tasks.records import ClassExample
from biograft.corpus.tasks.rows import read_tabbed

if TYPE_CHECKING:
    from biograft.sources.log import ReadLog


def read(config: TaskConfig, log: ReadLog) -> Iterator[ClassExample]:
    """Read texts in the order of the lines."""
    for row in read_tabbed(config, log, 2, "class, text"):
        label, text = row.cells
        if not label.strip() or not text.strip():
            log.reject("class or text is blank", row.line, row.text)
            continue
        yield ClassExample(text, (label.strip(),))


FORMAT = TaskFormat("class", read)
