"""Matching, inference and classification as kinds of task."""

from __future__ import annotations

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
from biograft.tasks.kinds import TaskKind
from biograft.tasks.reading import reader_of

_FIGURES = ("f1", "accuracy", "macro_f1", "precision", "recall")

MATCHING = TaskKind(
    config=MatchingConfig,
    read=reader_of("pair"),
    start=MatchingModel.start,
    build=MatchingModel,
    figures=_FIGURES,
)
INFERENCE = TaskKind(
    config=InferenceConfig,
    read=reader_of("pair"),
    start=InferenceModel.start,
    build=InferenceModel,
    figures=_FIGURES,
)
CLASSIFICATION = TaskKind(
    config=ClassificationConfig,
    read=reader_of("class"),
    start=ClassificationModel.start,
    build=ClassificationModel,
    figures=_FIGURES,
)
