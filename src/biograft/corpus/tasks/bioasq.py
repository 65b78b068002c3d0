"""BioASQ's questions to be answered with yes or no: id, question, context, answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from biograft.corpus.tasks.format import TaskConfig, TaskFormat, by_lines
from biograft.corpus.tasks.records import ClassExample
from biograft.corpus.tasks.rows import read_tabbed

if TYPE_CHECKING:
    from biograft.sources.log import ReadLog

ANSWERS = ("yes", "no")


def read(config: TaskConfig, log: ReadLog) -> Iterator[ClassExample]:
    """Read questions in the order of the lines."""
    for row in read_tabbed(config, log, 4, "id, question, context, yes/no"):
        identifier, question, context, answer = row.cells
        if answer.strip() not in ANSWERS:
            log.reject("the answer is neither yes nor no", row.line, row.text)
        elif not question.strip():
            log.reject("question is blank", row.line, row.text)
        else:
            yield ClassExample(question, (answer.strip(),), context, id=identifier.strip())


def _fits(lines: list[str]) -> bool:
    cells = [line.split("\t") for line in lines]
    return all(len(row) == 4 and row[3].strip() in ANSWERS for row in cells)


FORMAT = TaskFormat("class", read, by_lines(_fits))
