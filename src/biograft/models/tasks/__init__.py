"""Fine-tuning and evaluation of encoders on text tasks.

Named entity recognition (NER), relation extraction, text matching, natural language inference,
text classification and answer ranking.

>>> from biograft.models.tasks import open_task
>>> model = open_task("RUN")  # doctest: +SKIP
>>> model.predict(documents)  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.models.tasks.classification import (
        ClassificationModel as ClassificationModel,
        ClassPrediction as ClassPrediction,
        InferenceModel as InferenceModel,
        MatchingModel as MatchingModel,
        classification_report as classification_report,
    )
    from biograft.models.tasks.folder import open_task as open_task, write_model as write_model
    from biograft.models.tasks.model import (
        LabelNetwork as LabelNetwork,
        LengthBatches as LengthBatches,
        LinearHead as LinearHead,
        TaskModel as TaskModel,
        TaskNetwork as TaskNetwork,
    )
    from biograft.models.tasks.ner import (
        CrfHead as CrfHead,
        NerModel as NerModel,
        SpanHead as SpanHead,
        TagHead as TagHead,
        TagSet as TagSet,
        TextUnit as TextUnit,
        Window as Window,
        cut_windows as cut_windows,
    )
    from biograft.models.tasks.ranking import (
        RankingModel as RankingModel,
        RankingPrediction as RankingPrediction,
        ranking_report as ranking_report,
    )
    from biograft.models.tasks.relation import (
        RelationModel as RelationModel,
        RelationPrediction as RelationPrediction,
    )
    from biograft.models.tasks.task import (
        CLASSIFICATION as CLASSIFICATION,
        TASKS as TASKS,
        ClassificationConfig as ClassificationConfig,
        InferenceConfig as InferenceConfig,
        MatchingConfig as MatchingConfig,
        NerConfig as NerConfig,
        RankingConfig as RankingConfig,
        RelationConfig as RelationConfig,
        TaskDataConfig as TaskDataConfig,
        TaskExamples as TaskExamples,
        TaskKind as TaskKind,
        TaskTraining as TaskTraining,
        reader_of as reader_of,
    )
    from biograft.models.tasks.tokens import (
        SequenceTokenizer as SequenceTokenizer,
        TaskTokenizer as TaskTokenizer,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
