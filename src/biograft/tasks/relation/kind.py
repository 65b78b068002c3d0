"""Relation extraction as a kind of task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from biograft.corpus.tasks import TaskConfig, read_task
from biograft.corpus.tasks.records import RelationExample
from biograft.errors import InputError
from biograft.tasks.config import DataConfig
from biograft.tasks.kinds import TaskExamples, TaskKind
from biograft.tasks.relation.config import RelationConfig
from biograft.tasks.relation.model import RelationModel


def read(paths: Sequence[str], part: str, data: DataConfig) -> TaskExamples:
    """Read relation examples of any task format.

    Where files have parts (DDI's zip), only the part asked for is taken.
    """
    examples: list[RelationExample] = []
    rejected: Counter[str] = Counter()
    for path in paths:
        config = TaskConfig(
            path=Path(path),
            format=data.format,
            part=part if data.has_parts or data.dev_list else "",
            dev_list=Path(data.dev_list) if data.dev_list and part != "test" else None,
            grouped=data.grouped,
        )
        found = read_task(config)
        if found.kind != "relation":
            raise InputError(f"holds examples of the kind {found.kind}, not relation", path=path)
        for example in found.examples:
            if isinstance(example, RelationExample):
                if not example.label:
                    raise InputError("holds examples without a label", path=path)
                examples.append(example)
        rejected += found.log.rejected.counts
    return TaskExamples(examples, rejected)


KIND = TaskKind(config=RelationConfig, read=read, start=RelationModel.start, build=RelationModel)
