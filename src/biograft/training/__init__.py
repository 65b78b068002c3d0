"""Training: one loop for all objectives, with exact resume from checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.recipe import BatchPlan as BatchPlan, TrainingConfig as TrainingConfig
    from biograft.training.batches import BatchSource as BatchSource
    from biograft.training.checkpoint import (
        Cursor as Cursor,
        TrainingState as TrainingState,
        find_checkpoints as find_checkpoints,
        load_checkpoint as load_checkpoint,
        save_checkpoint as save_checkpoint,
    )
    from biograft.training.loop import (
        Task as Task,
        TrainingResult as TrainingResult,
        count_steps as count_steps,
        learning_rate as learning_rate,
        make_optimiser as make_optimiser,
        train as train,
    )
    from biograft.training.run_folder import (
        RUN as RUN,
        check_run as check_run,
        sole_run as sole_run,
        start_run as start_run,
    )
    from biograft.training.sweeps import SweepResult as SweepResult, sweep as sweep


__getattr__, __dir__, __all__ = lazify(__name__)
