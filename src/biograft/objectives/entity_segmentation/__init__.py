"""Entity segmentation: where in a long entity its sub-entities end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.objectives.entity_segmentation.config import EntitySegmentationConfig
    from biograft.objectives.entity_segmentation.objective import EntitySegmentation

__all__ = ["EntitySegmentation", "EntitySegmentationConfig"]

_HOMES = {
    "EntitySegmentation": "biograft.objectives.entity_segmentation.objective",
    "EntitySegmentationConfig": "biograft.objectives.entity_segmentation.config",
}

__getattr__ = load_on_use(__name__, _HOMES)
