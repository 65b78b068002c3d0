"""Relation extraction with any encoder: how two mentions of a text are related."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.tasks.relation.config import RelationConfig as RelationConfig
    from biograft.tasks.relation.model import (
        RelationAnswer as RelationAnswer,
        RelationModel as RelationModel,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
