"""Tasks on text with any encoder, trained, measured, compared.

Entities (NER), relations, pairs of texts (matching, inference), classes, answers (ranking).

>>> from biograft.tasks import open_task
>>> model = open_task("RUN")  # doctest: +SKIP
>>> model.predict(documents)  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.tasks.comparing import compare_runs, compare_with_figure
    from biograft.tasks.folder import open_task
    from biograft.tasks.kinds import TASKS
    from biograft.tasks.recipes import TaskRecipe
    from biograft.tasks.running import TaskLesson, TaskResult, finetune_task

__all__ = [
    "TASKS",
    "TaskLesson",
    "TaskRecipe",
    "TaskResult",
    "compare_runs",
    "compare_with_figure",
    "finetune_task",
    "open_task",
]

_HOMES = {
    "TASKS": "biograft.tasks.kinds",
    "TaskLesson": "biograft.tasks.running",
    "TaskRecipe": "biograft.tasks.recipes",
    "TaskResult": "biograft.tasks.running",
    "compare_runs": "biograft.tasks.comparing",
    "compare_with_figure": "biograft.tasks.comparing",
    "finetune_task": "biograft.tasks.running",
    "open_task": "biograft.tasks.folder",
}

__getattr__ = load_on_use(__name__, _HOMES)
