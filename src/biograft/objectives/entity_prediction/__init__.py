"""Entity prediction: which entity a mention means whose own was withheld or exchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.objectives.entity_prediction.config import (
        EntityPredictionConfig as EntityPredictionConfig,
    )
    from biograft.objectives.entity_prediction.objective import EntityPrediction as EntityPrediction


__getattr__, __dir__, __all__ = lazify(__name__)
