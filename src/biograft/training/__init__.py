"""Training: one loop that knows no objective, and the state it can be taken up from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.training.config import TrainingConfig
    from biograft.training.loop import TrainingResult, train
    from biograft.training.task import BatchSource, Task

__all__ = ["BatchSource", "Task", "TrainingConfig", "TrainingResult", "train"]

_HOMES = {
    "BatchSource": "biograft.training.task",
    "Task": "biograft.training.task",
    "TrainingConfig": "biograft.training.config",
    "TrainingResult": "biograft.training.loop",
    "train": "biograft.training.loop",
}

__getattr__ = load_on_use(__name__, _HOMES)
