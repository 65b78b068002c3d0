"""Entity detection: which tokens begin a mention, which are in one, which are in none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.objectives.entity_detection.config import (
        EntityDetectionConfig as EntityDetectionConfig,
    )
    from biograft.objectives.entity_detection.objective import EntityDetection as EntityDetection


__getattr__, __dir__, __all__ = lazify(__name__)
