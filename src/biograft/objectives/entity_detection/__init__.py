"""Entity detection: which tokens begin a mention, which are in one, which are in none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.objectives.entity_detection.config import EntityDetectionConfig
    from biograft.objectives.entity_detection.objective import EntityDetection

__all__ = ["EntityDetection", "EntityDetectionConfig"]

_HOMES = {
    "EntityDetection": "biograft.objectives.entity_detection.objective",
    "EntityDetectionConfig": "biograft.objectives.entity_detection.config",
}

__getattr__ = load_on_use(__name__, _HOMES)
