"""Fine-tuning and evaluation of encoders on text tasks.

Named entity recognition (NER), relation extraction, text matching, natural language inference,
text classification and answer ranking.

>>> from biograft.tasks import open_task
>>> model = open_task("RUN")  # doctest: +SKIP
>>> model.predict(documents)  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.tasks.classification import ClassificationModel as ClassificationModel
    from biograft.tasks.configs import (
        InferenceConfig as InferenceConfig,
    )
    from biograft.tasks.folder import open_task as open_task
    from biograft.tasks.kinds import (
        CLASSIFICATION as CLASSIFICATION,
    )
    from biograft.tasks.model import (
        TaskModel as TaskModel,
    )
    from biograft.tasks.network import (
        LinearHead as LinearHead,
        TaskNetwork as TaskNetwork,
    )
    from biograft.tasks.recipe import TaskRecipe as TaskRecipe
    from biograft.tasks.results import (
        compare_runs as compare_runs,
        compare_with_value as compare_with_value,
    )
    from biograft.tasks.runs import (
        TaskResult as TaskResult,
        TaskTrainingData as TaskTrainingData,
        finetune_task as finetune_task,
    )
    from biograft.tasks.task import (
        TASKS as TASKS,
        TaskKind as TaskKind,
        reader_of as reader_of,
    )
    from biograft.tasks.tokens import (
        SequenceTokenizer as SequenceTokenizer,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
