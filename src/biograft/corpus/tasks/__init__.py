"""Task files: pairs, rankings, classes and relations, each read into one plain record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.corpus.tasks.format import TaskConfig as TaskConfig, TaskFormat as TaskFormat
    from biograft.corpus.tasks.jsonl import write_examples as write_examples
    from biograft.corpus.tasks.leakage import Overlap as Overlap, overlap as overlap
    from biograft.corpus.tasks.marks import Anonymised as Anonymised, anonymise as anonymise
    from biograft.corpus.tasks.reading import (
        TASK_FORMATS as TASK_FORMATS,
        TaskSet as TaskSet,
        read_examples as read_examples,
        read_task as read_task,
    )
    from biograft.corpus.tasks.records import (
        Answer as Answer,
        ClassExample as ClassExample,
        Example as Example,
        PairExample as PairExample,
        RankingExample as RankingExample,
        RelationExample as RelationExample,
    )
    from biograft.corpus.tasks.summary import Summary as Summary, summarise as summarise


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

__getattr__, __dir__, __all__ = lazify(__name__)
