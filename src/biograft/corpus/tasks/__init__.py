"""Task files: pairs, rankings, classes and relations, each read into one plain record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.corpus.tasks.format import TaskConfig, TaskFormat
    from biograft.corpus.tasks.jsonl import write_examples
    from biograft.corpus.tasks.leakage import Overlap, overlap
    from biograft.corpus.tasks.marks import Anonymised, anonymise
    from biograft.corpus.tasks.reading import TASK_FORMATS, TaskSet, read_examples, read_task
    from biograft.corpus.tasks.records import (
        Answer,
        ClassExample,
        Example,
        PairExample,
        RankingExample,
        RelationExample,
    )
    from biograft.corpus.tasks.summary import Summary, summarise

__all__ = [
    "TASK_FORMATS",
    "Anonymised",
    "Answer",
    "ClassExample",
    "Example",
    "Overlap",
    "PairExample",
    "RankingExample",
    "RelationExample",
    "Summary",
    "TaskConfig",
    "TaskFormat",
    "TaskSet",
    "anonymise",
    "overlap",
    "read_examples",
    "read_task",
    "summarise",
    "write_examples",
]

_MODULES = {
    "format": ("TaskConfig", "TaskFormat"),
    "jsonl": ("write_examples",),
    "leakage": ("Overlap", "overlap"),
    "marks": ("Anonymised", "anonymise"),
    "reading": ("TASK_FORMATS", "TaskSet", "read_examples", "read_task"),
    "records": (
        "Answer",
        "ClassExample",
        "Example",
        "PairExample",
        "RankingExample",
        "RelationExample",
    ),
    "summary": ("Summary", "summarise"),
}
_HOMES = {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names}

__getattr__ = load_on_use(__name__, _HOMES)
