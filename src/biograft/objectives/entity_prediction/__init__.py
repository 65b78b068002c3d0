"""Entity prediction: which entity a mention means whose own was withheld or exchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.objectives.entity_prediction.config import EntityPredictionConfig
    from biograft.objectives.entity_prediction.objective import EntityPrediction

__all__ = ["EntityPrediction", "EntityPredictionConfig"]

_HOMES = {
    "EntityPrediction": "biograft.objectives.entity_prediction.objective",
    "EntityPredictionConfig": "biograft.objectives.entity_prediction.config",
}

__getattr__ = load_on_use(__name__, _HOMES)
