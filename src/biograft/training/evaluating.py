"""When a model is evaluated while it learns: every so many steps, and where an epoch ends."""

from __future__ import annotations

from typing import Any

import torch

from biograft.training.checkpoint import Place
from biograft.training.run_folder import MetricsLog
from biograft.training.task import Batch, Task


class Evaluations:
    """Evaluates what a task says, once at each place where that is due, and logs it."""

    def __init__(self, task: Task[Batch], every: int, start: Place, log: MetricsLog) -> None:
        self._task, self._every, self._log = task, every, log
        self._start, self._epoch = start, start.epoch
        self.newest: dict[str, Any] | None = None

    @torch.no_grad()
    def look(self, place: Place, *, last: bool) -> bool:
        """Evaluate what is due here, with dropout off; give whether the task has had enough."""
        new = place.step > self._start.step or place.step == 0  # not done before a resume
        if self._task.evaluate and new and is_due(self._every, place.step, last=last):
            self._task.model.eval()
            self._write(place, self._task.evaluate())
        if self._task.after_epoch is None or place.epoch == self._epoch:
            return False
        self._epoch = place.epoch
        self._task.model.eval()
        found, enough = self._task.after_epoch(place.epoch)
        self._write(place, found)
        return enough

    def _write(self, place: Place, found: dict[str, Any]) -> None:
        self.newest = found
        self._log.write({"step": place.step, "evaluation": found})


def is_due(every: int, step: int, *, last: bool) -> bool:
    """Whether something that happens every so many steps, and at the end, happens now."""
    return last or (every > 0 and step % every == 0)
