"""Candidate answers one a line, gathered by question.

A file may scatter the answers of a question, so all of it is held before the first question is
given; questions stand in the order in which they first occur, answers in the file's order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from biograft.corpus.tasks.format import TaskConfig, TaskFormat
from biograft.corpus.tasks.records import Answer, RankingExample
from biograft.corpus.tasks.rows import Row, read_tabbed

if TYPE_CHECKING:
    from biograft.sources.log import ReadLog

Judged = tuple[str, str, Answer]
"""The id of a question, its text, and one answer."""


def read_cmedqa(config: TaskConfig, log: ReadLog) -> Iterator[RankingExample]:
    """Read cMedQA as ChineseBLUE has it: 0/1, question, answer, quoted as in CSV."""
    rows = read_tabbed(config, log, 3, "0/1, question, answer", quoted=True)
    return gather(_judged(rows, log, label=0, query=1, answer=2))


def read_webmedqa(config: TaskConfig, log: ReadLog) -> Iterator[RankingExample]:
    """Read WebMedQA: question id, 0/1, department, question, answer."""
    rows = read_tabbed(config, log, 5, "id, 0/1, department, question, answer")
    return gather(_judged(rows, log, label=1, query=3, answer=4, id_at=0))


def gather(judged: Iterable[Judged]) -> Iterator[RankingExample]:
    """Bring the answers of each question together."""
    questions: dict[tuple[str, str], list[Answer]] = {}
    for identifier, query, answer in judged:
        questions.setdefault((identifier, query), []).append(answer)
    for (identifier, query), candidates in questions.items():
        yield RankingExample(query, tuple(candidates), identifier)


def relevance(cell: str) -> int | None:
    """Read a relevance, a whole number from 0; none if it is not one.

    >>> relevance(" 2 "), relevance("yes")
    (2, None)
    """
    cell = cell.strip()
    return int(cell) if cell.isascii() and cell.isdecimal() and len(cell) <= 9 else None


def _judged(
    rows: Iterable[Row],
    log: ReadLog,
    *,
    label: int,
    query: int,
    answer: int,
    id_at: int | None = None,
) -> Iterator[Judged]:
    for row in rows:
        found = relevance(row.cells[label])
        if found is None:
            log.reject("the label is not a whole number such as 0 or 1", row.line, row.text)
        elif not row.cells[query].strip() or not row.cells[answer].strip():
            log.reject("question or answer is blank", row.line, row.text)
        else:
            identifier = "" if id_at is None else row.cells[id_at].strip()
            yield identifier, row.cells[query], Answer(row.cells[answer], found)


CMEDQA = TaskFormat("ranking", read_cmedqa)
WEBMEDQA = TaskFormat("ranking", read_webmedqa)
