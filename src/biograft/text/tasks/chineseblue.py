"""ChineseBLUE task files: readers of question pairs (cMedQQ, cMedQNLI), classes and rankings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from biograft.kb.sources.json_files import read_objects
from biograft.text.tasks.records import Answer, ClassExample, PairExample, RankingExample
from biograft.text.tasks.registry import TaskConfig, TaskFormat, by_lines
from biograft.text.tasks.rows import (
    JudgedAnswer,
    TabRow,
    group_by_question,
    read_tabbed,
    relevance,
)

if TYPE_CHECKING:
    from biograft.kb.sources.log import ReadLog


def read_pairs(config: TaskConfig, log: ReadLog) -> Iterator[PairExample]:
    """Read cMedQQ or cMedQNLI: label and two texts, separated by tabs without quoting."""
    for row in read_tabbed(config, log, 3, "label, text, text"):
        label, first, second = row.cells
        if not (label.strip() and first.strip() and second.strip()):
            log.reject("label or text is empty", row.line, row.text)
            continue
        yield PairExample(first, second, label.strip())


CMEDQQ = TaskFormat("pair", read_pairs)


def read_texts(config: TaskConfig, log: ReadLog) -> Iterator[ClassExample]:
    """Read cMedTC or cMedIC: class and text, separated by a tab."""
    for row in read_tabbed(config, log, 2, "class, text"):
        label, text = row.cells
        if not label.strip() or not text.strip():
            log.reject("class or text is empty", row.line, row.text)
            continue
        yield ClassExample(text, (label.strip(),))


CMEDTC = TaskFormat("class", read_texts)


def read_cmedqa(config: TaskConfig, log: ReadLog) -> Iterator[RankingExample]:
    """Read cMedQA as ChineseBLUE has it: 0/1, question, answer, quoted as in CSV."""
    rows = read_tabbed(config, log, 3, "0/1, question, answer", quoted=True)
    return group_by_question(_judged_answers(rows, log, label=0, query=1, answer=2))


def read_webmedqa(config: TaskConfig, log: ReadLog) -> Iterator[RankingExample]:
    """Read WebMedQA: question id, 0/1, department, question, answer."""
    rows = read_tabbed(config, log, 5, "id, 0/1, department, question, answer")
    return group_by_question(_judged_answers(rows, log, label=1, query=3, answer=4, id_at=0))


def _judged_answers(
    rows: Iterable[TabRow],
    log: ReadLog,
    *,
    label: int,
    query: int,
    answer: int,
    id_at: int | None = None,
) -> Iterator[JudgedAnswer]:
    for row in rows:
        grade = relevance(row.cells[label])
        if grade is None:
            log.reject("the label is not a whole number such as 0 or 1", row.line, row.text)
        elif not row.cells[query].strip() or not row.cells[answer].strip():
            log.reject("question or answer is empty", row.line, row.text)
        else:
            identifier = "" if id_at is None else row.cells[id_at].strip()
            yield identifier, row.cells[query], Answer(row.cells[answer], grade)


CMEDQA = TaskFormat("ranking", read_cmedqa)
WEBMEDQA = TaskFormat("ranking", read_webmedqa)


def read_cmedir(config: TaskConfig, log: ReadLog) -> Iterator[RankingExample]:
    """Read cMedIR: one search with graded documents per JSON line."""
    for row in read_objects(config.path, log, config.encoding):
        query, documents = row.value.get("query"), row.value.get("documents")
        if not isinstance(query, str) or not query.strip() or not isinstance(documents, list):
            log.reject("not of the form query, documents", row.line, row.text)
            continue
        answers = tuple(map(_answer, documents))
        if not answers or None in answers:
            log.reject("a document without title or grade", row.line, row.text)
            continue
        yield RankingExample(query, tuple(answer for answer in answers if answer is not None))


def _answer(value: Any) -> Answer | None:
    if not isinstance(value, dict):
        return None
    title, grade = value.get("title"), relevance(str(value.get("label", "")))
    if not isinstance(title, str) or not title.strip() or grade is None:
        return None
    return Answer(title, grade, str(value.get("url", "")))


def _is_cmedir(lines: list[str]) -> bool:
    head = lines[0]
    return head.startswith("{") and all(f'"{key}"' in head for key in ("query", "documents"))


CMEDIR = TaskFormat("ranking", read_cmedir, by_lines(_is_cmedir))
