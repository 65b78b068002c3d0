"""Classes of texts and of pairs of texts, with any encoder: three kinds of task, one model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.tasks.classification.choices import ClassAnswer
    from biograft.tasks.classification.config import (
        ClassificationConfig,
        InferenceConfig,
        MatchingConfig,
    )
    from biograft.tasks.classification.model import (
        ClassificationModel,
        InferenceModel,
        MatchingModel,
    )

__all__ = [
    "ClassAnswer",
    "ClassificationConfig",
    "ClassificationModel",
    "InferenceConfig",
    "InferenceModel",
    "MatchingConfig",
    "MatchingModel",
]

_MODULES = {
    "choices": ("ClassAnswer",),
    "config": ("ClassificationConfig", "InferenceConfig", "MatchingConfig"),
    "model": ("ClassificationModel", "InferenceModel", "MatchingModel"),
}
_HOMES = {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names}

__getattr__ = load_on_use(__name__, _HOMES)
