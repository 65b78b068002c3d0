"""Train one task model with one seed, with model selection on dev after each epoch."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from biograft.errors import ConfigError
from biograft.models.tasks.model import (
    CountingModel,
    LengthBatches,
    Report,
    ResamplingModel,
    Sized,
    TaskModel,
)
from biograft.models.tasks.task import TASKS, TaskTraining
from biograft.progress import Progress
from biograft.training import Task, train
from biograft.training.processes import join_processes


@dataclass(frozen=True, slots=True)
class Fit:
    """The result of a training; the model has the weights of its best epoch."""

    epochs: list[dict[str, Any]]
    """The number and the dev metrics of each epoch."""
    best_epoch: int
    report: Report
    """On dev, at the best epoch."""
    predictions: Sequence[Any]
    n_items: int
    lost: Counter[str]
    """Counts of what could not be learned, by reason."""
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return all but the predictions as plain values."""
        return {
            "dev": self.report.to_json(),
            "best_epoch": self.best_epoch,
            "epochs": self.epochs,
            "n_sequences": self.n_items,
            "lost": dict(self.lost),
            "seconds": round(self.seconds, 3),
        }


class _ModelSelection:
    """Evaluates on dev after each epoch and keeps the weights of the best epoch."""

    def __init__(
        self, model: TaskModel[Any, Any], dev: Sequence[Any], training: TaskTraining
    ) -> None:
        self._model, self._dev, self._training = model, dev, training
        self._metrics = TASKS.load(model.kind).metrics
        self.epochs: list[dict[str, Any]] = []
        self.best_epoch = 0
        self.report: Report | None = None
        self._best = -inf
        self.predictions: Sequence[Any] = ()
        self._weights: dict[str, Tensor] = {}

    def evaluate(self, epoch: int) -> tuple[dict[str, Any], bool]:
        """Evaluate after an epoch; return its metrics and whether to stop training."""
        predictions = self._model.predict(self._dev, self._training.precision)
        report = self._model.report(self._dev, predictions)
        metrics = report.to_json()
        entry = {"epoch": epoch, **{name: metrics[name] for name in self._metrics}}
        score = entry[self._metrics[0]]
        self.epochs.append(entry)
        if score > self._best:
            self._best = score
            self.best_epoch, self.report, self.predictions = epoch, report, predictions
            state = self._model.network.state_dict()
            self._weights = {key: value.detach().cpu().clone() for key, value in state.items()}
        n_waited = epoch - self.best_epoch
        return dict(entry), score == 1 or 0 < self._training.patience <= n_waited

    def restore(self) -> None:
        """Load the best weights into the model."""
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
    """Train a model; the log goes to the new folder ``run``.

    Args:
        model: Untrained model.
        train_on: Training examples.
        dev: Examples that choose the best epoch.
        run: New folder of the log and the checkpoints.
        seed: Seed of the order of the examples, and of dropout.
        progress: Progress of training.
    """
    began, processes = time.perf_counter(), join_processes()
    training: TaskTraining = model.config.training
    items, lost = model.training_items(train_on)
    if not items or not dev:
        raise ConfigError("finetune: expected examples to learn from and a dev set, found none")
    source: LengthBatches[Sized] = LengthBatches(
        items,
        training.plan_batch(processes.num_processes).size,
        seed=seed,
        rank=processes.process_index,
        world=processes.num_processes,
        sample_epoch=model.sample_epoch if isinstance(model, ResamplingModel) else None,
    )
    selection = _ModelSelection(model, dev, training)
    count = model.count if isinstance(model, CountingModel) else len

    def weighted_loss(
        network: nn.Module, batch: Sequence[Any], multipliers: Mapping[str, float]
    ) -> tuple[Tensor, dict[str, float]]:
        """Compute the loss of a batch, weighted so that an update is the mean over its batches."""
        loss, statistics = model.loss(network, batch)
        return multipliers["loss"] * loss, statistics

    task = Task(
        model=model.network,
        source=source,
        compute_loss=weighted_loss,
        counts=lambda batch: {"loss": count(batch)},
        after_epoch=selection.evaluate,
        described={"task": model.kind, "seed": seed},
    )
    train(task, training.for_run(seed), run, progress=progress)
    processes.wait_for_everyone()  # all have read the last state
    shutil.rmtree(run / "checkpoints", ignore_errors=True)  # of the last epoch, not the best one
    selection.restore()
    if selection.report is None:
        raise ConfigError("training.epochs: no epoch was finished")
    return Fit(
        epochs=selection.epochs,
        best_epoch=selection.best_epoch,
        report=selection.report,
        predictions=selection.predictions,
        n_items=len(items),
        lost=lost,
        seconds=time.perf_counter() - began,
    )
