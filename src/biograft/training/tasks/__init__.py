"""Fine-tuning of encoders on text tasks, and the comparison of its runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.training.tasks.recipe import (
        TaskRecipe as TaskRecipe,
    )
    from biograft.training.tasks.results import (
        RESULTS as RESULTS,
        compare_runs as compare_runs,
        compare_with_value as compare_with_value,
    )
    from biograft.training.tasks.runs import (
        TaskResult as TaskResult,
        TaskTrainingData as TaskTrainingData,
        finetune_task as finetune_task,
    )
    from biograft.training.tasks.training import (
        fit as fit,
    )

__getattr__, __dir__, __all__ = lazify(__name__)
