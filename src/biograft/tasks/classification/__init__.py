"""Classes of texts and of pairs of texts, with any encoder: three kinds of task, one model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.tasks.classification.choices import ClassAnswer as ClassAnswer
    from biograft.tasks.classification.config import (
        ClassificationConfig as ClassificationConfig,
        InferenceConfig as InferenceConfig,
        MatchingConfig as MatchingConfig,
    )
    from biograft.tasks.classification.model import (
        ClassificationModel as ClassificationModel,
        InferenceModel as InferenceModel,
        MatchingModel as MatchingModel,
    )


_MODULES = {
    "choices": ("ClassAnswer",),
    "config": ("ClassificationConfig", "InferenceConfig", "MatchingConfig"),
    "model": ("ClassificationModel", "InferenceModel", "MatchingModel"),
}

__getattr__, __dir__, __all__ = lazify(__name__)
