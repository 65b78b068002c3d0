"""Relation extraction as a kind of task."""

from __future__ import annotations

from biograft.tasks.kinds import TaskKind
from biograft.tasks.reading import reader_of
from biograft.tasks.relation.config import RelationConfig
from biograft.tasks.relation.model import RelationModel

KIND = TaskKind(
    config=RelationConfig,
    read=reader_of("relation"),
    start=RelationModel.start,
    build=RelationModel,
)
