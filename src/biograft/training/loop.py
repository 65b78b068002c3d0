"""The loop: evaluate? save? stop? step, log. It knows no objective and no data.

It runs on accelerate: one CPU, one GPU, or several processes under ``torchrun`` are the same
code. On a CPU a run that was stopped and taken up again gives the same weights to the last bit.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from biograft.errors import ConfigError
from biograft.progress import Progress
from biograft.training.checkpoint import (
    Place,
    find_checkpoints,
    load_checkpoint,
    save_checkpoint,
    sweep,
)
from biograft.training.config import TrainingConfig
from biograft.training.evaluating import Evaluations, is_due
from biograft.training.optimiser import learning_rate, make_optimiser
from biograft.training.processes import make_accelerator
from biograft.training.run_folder import MetricsLog, check_run, sole_run, start_run
from biograft.training.stopping import Stopping
from biograft.training.task import Batch, Task
from biograft.training.update import Updater


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """How a session of training ended."""

    step: int
    n_steps: int
    loss: float | None
    """The loss of the last update; none if there was none to make."""
    seconds: float
    checkpoint: Path
    evaluation: dict[str, Any] | None

    @property
    def finished(self) -> bool:
        """Whether all steps are done; else the run is to be resumed."""
        return self.step >= self.n_steps


def train(
    task: Task[Batch],
    config: TrainingConfig,
    run: Path,
    *,
    resume: bool = False,
    progress: Progress | None = None,
) -> TrainingResult:
    """Train until the steps are done, the time is over, or an interrupt; the state is saved."""
    with sole_run(run):
        return _train(task, config, run, resume=resume, progress=progress)


def _train(
    task: Task[Batch],
    config: TrainingConfig,
    run: Path,
    *,
    resume: bool,
    progress: Progress | None,
) -> TrainingResult:
    n_steps, progress = count_steps(config, len(task.source)), progress or Progress(enabled=False)
    accelerator = make_accelerator()
    main = accelerator.is_main_process
    task.model.to(accelerator.device)
    optimiser = make_optimiser(task.model, config)
    start = _open_run(task, optimiser, run, resume=resume, main=main)
    accelerator.wait_for_everyone()
    updater = Updater(task, optimiser, config, accelerator, start)
    log = MetricsLog(run, start.step, enabled=main)
    evaluations = Evaluations(task, config.eval_every, start, log)
    began, loss, stop = time.perf_counter(), None, False
    progress.start("training")
    with Stopping(config.max_minutes) as stopping:
        while True:
            place = updater.place
            last = place.step >= n_steps
            stop = evaluations.look(place, last=last) or stop
            if place.step > start.step and (
                stop or is_due(config.save_every, place.step, last=last)
            ):
                if main:
                    save_checkpoint(run, place, task.model, optimiser, keep=config.keep)
                accelerator.wait_for_everyone()
            if last or stop:
                break
            entry, stop = updater.update(learning_rate(place.step, n_steps, config), stopping)
            loss = entry["loss"]
            if is_due(config.log_every, entry["step"], last=entry["step"] >= n_steps):
                log.write({**entry, "seconds": round(time.perf_counter() - began, 3)})
            progress.advance(entry["rows"], entry["step"] / n_steps)
    progress.finish()
    if stopping.interrupted:
        raise KeyboardInterrupt(f"the state of step {place.step} is saved in {run}")
    seconds = time.perf_counter() - began
    saved = find_checkpoints(run)[-1]
    return TrainingResult(place.step, n_steps, loss, seconds, saved, evaluations.newest)


def count_steps(config: TrainingConfig, n_batches: int) -> int:
    """Count the updates of a run; an epoch's last one may reach into the next epoch."""
    if n_batches < 1:
        raise ConfigError("training: there is no batch to learn from")
    return config.steps or -(-config.epochs * n_batches // config.accumulate)


def _open_run(
    task: Task[Batch], optimiser: torch.optim.Optimizer, run: Path, *, resume: bool, main: bool
) -> Place:
    """Begin a run, or put the model where it was left."""
    if resume:
        check_run(run, task.described, task.provenance)
        if main:
            sweep(run)
        saved = find_checkpoints(run)
        return load_checkpoint(saved[-1], task.model, optimiser) if saved else Place()
    if main:
        start_run(run, task.described, task.provenance)
    return Place()
