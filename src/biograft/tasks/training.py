"""Train one model with one seed: measured on dev after each epoch, the best epoch kept."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from biograft.errors import ConfigError
from biograft.progress import Progress
from biograft.tasks.configs import TaskTraining
from biograft.tasks.model import ChoosingModel, LengthBatches, Report, Sized, TaskModel
from biograft.tasks.task import TASKS
from biograft.training import Task, train
from biograft.training.processes import join_processes


@dataclass(frozen=True, slots=True)
class Fit:
    """How a training went; the model has the weights of its best epoch."""

    epochs: list[dict[str, Any]]
    """Of each epoch its number and the figures of its kind on dev."""
    best_epoch: int
    report: Report
    """On dev, at the best epoch."""
    answers: Sequence[Any]
    n_items: int
    lost: Counter[str]
    """What of the examples could not be learned, by reason."""
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Give all but the answers as plain values."""
        return {
            "dev": self.report.to_json(),
            "best_epoch": self.best_epoch,
            "epochs": self.epochs,
            "n_sequences": self.n_items,
            "lost": dict(self.lost),
            "seconds": round(self.seconds, 3),
        }


class _Keeper:
    """Measures on dev after each epoch and keeps the weights of the best one."""

    def __init__(
        self, model: TaskModel[Any, Any], dev: Sequence[Any], training: TaskTraining
    ) -> None:
        self._model, self._dev, self._training = model, dev, training
        self._figures = TASKS.load(model.kind).figures
        self.epochs: list[dict[str, Any]] = []
        self.best_epoch = 0
        self.report: Report | None = None
        self._best = -1.0
        self.answers: Sequence[Any] = ()
        self._weights: dict[str, Tensor] = {}

    def measure(self, epoch: int) -> tuple[dict[str, Any], bool]:
        """Measure after an epoch; say whether dev cannot get better, or patience is at its end."""
        answers = self._model.predict(self._dev, self._training.precision)
        report = self._model.report(self._dev, answers)
        figures = report.to_json()
        entry = {"epoch": epoch, **{name: figures[name] for name in self._figures}}
        score = entry[self._figures[0]]
        self.epochs.append(entry)
        if score > self._best:
            self._best = score
            self.best_epoch, self.report, self.answers = epoch, report, answers
            state = self._model.network.state_dict()
            self._weights = {key: value.detach().cpu().clone() for key, value in state.items()}
        waited = epoch - self.best_epoch
        return dict(entry), score == 1 or 0 < self._training.patience <= waited

    def restore(self) -> None:
        """Put the best weights back."""
        self._model.network.load_state_dict(self._weights)


def fit(
    model: TaskModel[Any, Any],
    train_on: Sequence[Any],
    dev: Sequence[Any],
    run: Path,
    *,
    seed: int,
    progress: Progress | None = None,
) -> Fit:
    """Train a model in a new folder ``run``, which holds the log of it."""
    began, processes = time.perf_counter(), join_processes()
    training: TaskTraining = model.config.training
    items, lost = model.learnable(train_on)
    if not items or not dev:
        raise ConfigError("finetune: expected examples to learn from and a dev set, found none")
    source: LengthBatches[Sized] = LengthBatches(
        items,
        training.batch_size,
        seed=seed,
        rank=processes.process_index,
        world=processes.num_processes,
        choose=model.choose if isinstance(model, ChoosingModel) else None,
    )
    keeper = _Keeper(model, dev, training)
    task = Task(
        model=model.network,
        source=source,
        compute_loss=model.loss,
        after_epoch=keeper.measure,
        described={"task": model.kind, "seed": seed},
    )
    train(task, training.for_run(seed), run, progress=progress)
    processes.wait_for_everyone()  # until all have found the last state
    shutil.rmtree(run / "checkpoints", ignore_errors=True)  # the last epoch's, not the best one's
    keeper.restore()
    if keeper.report is None:
        raise ConfigError("training.epochs: no epoch was finished")
    seconds = time.perf_counter() - began
    return Fit(
        keeper.epochs, keeper.best_epoch, keeper.report, keeper.answers, len(items), lost, seconds
    )
