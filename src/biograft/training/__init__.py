"""Training: one loop for all objectives, with exact resume from checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.training.config import TrainingConfig as TrainingConfig
    from biograft.training.loop import (
        Task as Task,
        TrainingResult as TrainingResult,
        train as train,
    )
    from biograft.training.prefetch import BatchSource as BatchSource


__getattr__, __dir__, __all__ = lazify(__name__)
