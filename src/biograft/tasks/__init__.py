"""Tasks on text with any encoder, trained, measured, compared.

Entities (NER), relations, pairs of texts (matching, inference), classes, answers (ranking).

>>> from biograft.tasks import open_task
>>> model = open_task("RUN")  # doctest: +SKIP
>>> model.predict(documents)  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify as lazify

if TYPE_CHECKING:
    from biograft.tasks.folder import open_task as open_task
    from biograft.tasks.recipe import TaskRecipe as TaskRecipe
    from biograft.tasks.results import (
        compare_runs as compare_runs,
        compare_with_figure as compare_with_figure,
    )
    from biograft.tasks.runs import (
        TaskLesson as TaskLesson,
        TaskResult as TaskResult,
        finetune_task as finetune_task,
    )
    from biograft.tasks.task import TASKS as TASKS


__getattr__, __dir__, __all__ = lazify(__name__)
