"""Hallmarks of Cancer: labels (``0_1,1_0,...``: class 0 holds, class 1 does not), sentence, id."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from biograft.corpus.tasks.format import TaskConfig, TaskFormat, by_lines
from biograft.corpus.tasks.records import ClassExample
from biograft.corpus.tasks.rows import read_tabbed

if TYPE_CHECKING:
    from biograft.sources.log import ReadLog

HEADER = "labels\tsentence\tindex"
_LABELS = re.compile(r"\d+_[01](?:,\d+_[01])*")


def read(config: TaskConfig, log: ReadLog) -> Iterator[ClassExample]:
    """Read sentences in the order of the lines."""
    for row in read_tabbed(config, log, 3, "labels, sentence, id"):
        labels, sentence, identifier = row.cells
        if row.line == 1 and row.text == HEADER:
            log.n_read -= 1
        elif not _LABELS.fullmatch(labels.strip()):
            log.reject("labels are not of the form 0_1,1_0,...", row.line, row.text)
        elif not sentence.strip():
            log.reject("sentence is blank", row.line, row.text)
        else:
            given = (label.split("_") for label in labels.strip().split(","))
            holding = tuple(name for name, holds in given if holds == "1")
            yield ClassExample(sentence, holding, multi=True, id=identifier.strip())


FORMAT = TaskFormat("class", read, by_lines(lambda lines: lines[0] == HEADER))
