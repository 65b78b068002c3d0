"""cMedIR: JSON lines of a search and the titles of pages with grades (0 to 3).

``{"query": ..., "documents": [{"url", "label", "title"}, ...]}``. Several lines may hold the same
search with other pages; each line is one example.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from biograft.corpus.tasks.answers import relevance
from biograft.corpus.tasks.format import TaskConfig, TaskFormat, by_lines
from biograft.corpus.tasks.records import Answer, RankingExample
from biograft.sources.json_rows import read_objects

if TYPE_CHECKING:
    from biograft.sources.log import ReadLog


def read(config: TaskConfig, log: ReadLog) -> Iterator[RankingExample]:
    """Read searches in the order of the lines."""
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


def _fits(lines: list[str]) -> bool:
    head = lines[0]
    return head.startswith("{") and all(f'"{key}"' in head for key in ("query", "documents"))


FORMAT = TaskFormat("ranking", read, by_lines(_fits))
