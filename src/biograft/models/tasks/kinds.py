"""The kinds of tasks that biograft trains: what each reads, learns and reports."""

from __future__ import annotations

from biograft.models.tasks.configs import (
    ClassificationConfig,
    InferenceConfig,
    MatchingConfig,
    NerConfig,
    RankingConfig,
    RelationConfig,
)
from biograft.models.tasks.task import TaskKind, read_labelled_documents, reader_of

_CLASSES = ("f1", "accuracy", "macro_f1", "precision", "recall")
"""Metrics of texts with classes."""

NER = TaskKind(
    config=NerConfig,
    read=read_labelled_documents,
    model="biograft.models.tasks.ner:NerModel",
    counting=("types",),
)
RELATION = TaskKind(
    config=RelationConfig,
    read=reader_of("relation"),
    model="biograft.models.tasks.relation:RelationModel",
    counting=("negative",),
)
MATCHING = TaskKind(
    config=MatchingConfig,
    read=reader_of("pair"),
    model="biograft.models.tasks.classification:MatchingModel",
    metrics=_CLASSES,
    counting=("positive",),
)
INFERENCE = TaskKind(
    config=InferenceConfig,
    read=reader_of("pair"),
    model="biograft.models.tasks.classification:InferenceModel",
    metrics=_CLASSES,
)
CLASSIFICATION = TaskKind(
    config=ClassificationConfig,
    read=reader_of("class"),
    model="biograft.models.tasks.classification:ClassificationModel",
    metrics=_CLASSES,
)
RANKING = TaskKind(
    config=RankingConfig,
    read=reader_of("ranking"),
    model="biograft.models.tasks.ranking:RankingModel",
    metrics=("acc@1", "mrr"),
    counting=("questions",),
)
