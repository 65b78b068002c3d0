"""Task files: readers of pairs, rankings, classes and relations (BLURB, ChineseBLUE, tables)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.text.tasks.jsonl import write_examples as write_examples
    from biograft.text.tasks.registry import (
        TASK_FORMATS as TASK_FORMATS,
        Anonymised as Anonymised,
        Answer as Answer,
        ClassExample as ClassExample,
        Example as Example,
        PairExample as PairExample,
        RankingExample as RankingExample,
        RelationExample as RelationExample,
        TaskConfig as TaskConfig,
        TaskFormat as TaskFormat,
        TaskSet as TaskSet,
        anonymise as anonymise,
        read_examples as read_examples,
        read_task as read_task,
    )
    from biograft.text.tasks.summary import (
        Overlap as Overlap,
        Summary as Summary,
        overlap as overlap,
        summarise as summarise,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
