"""Entity segmentation: where in a long entity its sub-entities end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.objectives.entity_segmentation.config import (
        EntitySegmentationConfig as EntitySegmentationConfig,
    )
    from biograft.objectives.entity_segmentation.objective import (
        EntitySegmentation as EntitySegmentation,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
