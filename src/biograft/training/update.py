"""One update of the weights: the batches it takes, its random numbers, what is known after it."""

from __future__ import annotations

import math
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, Generic

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from biograft.errors import BiograftError
from biograft.nn.precision import attending_for_gradients, computing_in
from biograft.training.checkpoint import Place
from biograft.training.config import TrainingConfig
from biograft.training.stopping import Stopping
from biograft.training.task import Batch, BatchSource, Task


class Updater(Generic[Batch]):
    """Makes one update after the other, from a place in the batches on."""

    def __init__(
        self,
        task: Task[Batch],
        optimiser: torch.optim.Optimizer,
        config: TrainingConfig,
        accelerator: Accelerator,
        start: Place,
    ) -> None:
        self.task, self.optimiser, self.config = task, optimiser, config
        self.accelerator, self.place = accelerator, start
        self.model: nn.Module = accelerator.prepare(task.model)
        self._batches = _endless(task.source, start)

    def update(self, rate: float, stopping: Stopping) -> tuple[dict[str, Any], bool]:
        """Update once; give what to log, and whether any process is asked to stop."""
        began, step = time.perf_counter(), self.place.step
        self._seed(step)
        self.model.train()
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.zero_grad(set_to_none=True)
        with attending_for_gradients(self.model, self.config.precision, self.accelerator.device):
            loss, stats, n_rows = self._backward()
        norm = self._clip()
        # all processes must learn the same of a loss that is no number, and of an interrupt
        told = torch.tensor([loss, float(stopping.asked), *stats.values()], dtype=torch.float64)
        told = told.to(self.accelerator.device)
        loss, stop, *means = self.accelerator.reduce(told, "mean").tolist()
        stats = dict(zip(stats, means, strict=True))
        if not math.isfinite(loss) or not math.isfinite(norm):
            raise BiograftError(
                f"the training diverged at step {step + 1}: loss {loss}, norm of the gradient "
                f"{norm}; the last saved state stands; lower training.learning_rate, bound the "
                "gradient (training.clip) or set training.precision to fp32, and start anew"
            )
        self.optimiser.step()
        rows = n_rows * self.accelerator.num_processes
        return {
            "step": self.place.step,
            "epoch": self.place.epoch,
            "loss": loss,
            "learning_rate": rate,
            "gradient_norm": norm,
            **stats,
            "rows": rows,
            "rows_per_second": round(rows / (time.perf_counter() - began), 1),
            "peak_memory_mb": _peak_memory(),
        }, stop > 0

    def _backward(self) -> tuple[float, dict[str, float], int]:
        """Add up the gradients of the batches of one update; give their mean loss and stats."""
        total, sums, n_rows = 0.0, Counter[str](), 0
        n_parts, step = self.config.accumulate, self.place.step
        parts = [next(self._batches) for _ in range(n_parts)]
        multipliers = self._multipliers([batch for batch, _, _ in parts])
        for part, (batch, epoch, position) in enumerate(parts):
            waiting = part < n_parts - 1  # gradients of several processes meet once an update
            with self.accelerator.no_sync(self.model) if waiting else nullcontext():
                with computing_in(self.config.precision, self.accelerator.device):
                    loss, stats = self.task.compute_loss(self.model, batch, *multipliers[part])
                self.accelerator.backward(loss / n_parts)
            total += float(loss.detach()) / n_parts
            sums.update({name: value / n_parts for name, value in stats.items()})
            n_rows += len(batch)  # type: ignore[arg-type]
            self.place = Place(step + 1, epoch, position)
        return total, dict(sums), n_rows

    def _multipliers(self, batches: list[Batch]) -> list[tuple[dict[str, float], ...]]:
        """Say by what the means of each batch are multiplied, where the task counts."""
        if self.task.counts is None:
            return [()] * len(batches)
        counted = [self.task.counts(batch) for batch in batches]
        names = list(counted[0])
        own = torch.tensor([[of_batch[name] for name in names] for of_batch in counted])
        total = self.accelerator.reduce(own.sum(0).to(self.accelerator.device), "sum").tolist()
        n_batches = len(batches) * self.accelerator.num_processes
        return [
            (
                {
                    n: of[n] * n_batches / max(1, of_all)
                    for n, of_all in zip(names, total, strict=True)
                },
            )
            for of in counted
        ]

    def _clip(self) -> float:
        parameters = [p for p in self.model.parameters() if p.grad is not None]
        bound = self.config.clip or math.inf
        norm: Tensor = torch.nn.utils.clip_grad_norm_(parameters, bound)
        return float(norm)

    def _seed(self, step: int) -> None:
        """Let the random numbers of a step follow from it, so that they need not be saved."""
        key = [self.config.seed, self.accelerator.process_index, step]
        torch.manual_seed(int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0] >> 1))


def _endless(source: BatchSource[Batch], start: Place) -> Iterator[tuple[Batch, int, int]]:
    """Give the batches of all epochs, each with the epoch and position of the one after it."""
    epoch, position = start.epoch, start.position
    while True:
        for batch in source.batches(epoch, position):
            position += 1
            over = position >= len(source)
            yield batch, epoch + over, 0 if over else position
        epoch, position = epoch + 1, 0


def _peak_memory() -> float:
    """Give the most memory used so far, in MB: of the GPU where there is one."""
    if torch.cuda.is_available():
        return round(torch.cuda.max_memory_allocated() / 1e6, 1)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(used / 1e6 if sys.platform == "darwin" else used / 1e3, 1)
