"""Tasks on text with any encoder, trained, measured, compared.

Entities (NER), relations, pairs of texts (matching, inference), classes, answers (ranking).

>>> from biograft.tasks import open_task
>>> model = open_task("RUN")  # doctest: +SKIP
>>> model.predict(documents)  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.tasks.comparing import (
        compare_runs as compare_runs,
        compare_with_figure as compare_with_figure,
    )
    from biograft.tasks.folder import open_task as open_task
    from biograft.tasks.kinds import TASKS as TASKS
    from biograft.tasks.recipes import TaskRecipe as TaskRecipe
    from biograft.tasks.running import (
        TaskLesson as TaskLesson,
        TaskResult as TaskResult,
        finetune_task as finetune_task,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
