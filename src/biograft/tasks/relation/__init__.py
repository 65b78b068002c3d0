"""Relation extraction with any encoder: how two mentions of a text are related."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.tasks.relation.config import RelationConfig
    from biograft.tasks.relation.model import RelationAnswer, RelationModel

__all__ = ["RelationAnswer", "RelationConfig", "RelationModel"]

_HOMES = {
    "RelationAnswer": "biograft.tasks.relation.model",
    "RelationConfig": "biograft.tasks.relation.config",
    "RelationModel": "biograft.tasks.relation.model",
}

__getattr__ = load_on_use(__name__, _HOMES)
