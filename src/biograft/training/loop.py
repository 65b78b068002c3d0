"""What the loop is given to learn."""

from __future__ import annotations

import math
import resource
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from biograft.errors import BiograftError, ConfigError
from biograft.nn.precision import attention_for_training, autocast_in
from biograft.progress import Progress
from biograft.training.checkpoint import (
    Place,
    find_checkpoints,
    load_checkpoint,
    save_checkpoint,
    sweep,
)
from biograft.training.config import TrainingConfig
from biograft.training.processes import make_accelerator
from biograft.training.run_folder import MetricsLog, check_run, sole_run, start_run

Batch = TypeVar("Batch")
Batch_co = TypeVar("Batch_co", covariant=True)


class BatchSource(Protocol[Batch_co]):
    """Batches of each epoch in a fixed order, to be taken up anywhere; each has a length."""

    def __len__(self) -> int:
        """How many batches an epoch has."""

    def batches(self, epoch: int, position: int = 0) -> Iterator[Batch_co]:
        """Give the batches of an epoch from a position on."""


@dataclass(frozen=True, slots=True)
class Task(Generic[Batch]):
    """What is to be learnt: a model, batches, and the loss of a batch.

    ``compute_loss`` is called with the model as it is run (wrapped where there are several
    processes). ``evaluate`` is called without gradient, the model in its inference mode.

    Losses that are means over something that batches have more or less of (hidden tokens,
    mentions) need ``counts``: how much of it a batch has, by name. ``compute_loss`` is then also
    given by what each mean is to be multiplied, so that an update is the mean over all that its
    batches have, on however many processes they are.
    """

    model: nn.Module
    source: BatchSource[Batch]
    compute_loss: Callable[..., tuple[Tensor, dict[str, float]]]
    """Of model and batch, and of multipliers by name where there are ``counts``."""
    counts: Callable[[Batch], Mapping[str, int]] | None = None
    evaluate: Callable[[], dict[str, Any]] | None = None
    after_epoch: Callable[[int], tuple[dict[str, Any], bool]] | None = None
    """Called as ``evaluate`` is, when an update has ended an epoch, with how many have ended;
    gives what to log, and whether that is enough, which ends the training."""
    described: Mapping[str, Any] = field(default_factory=dict)
    """The whole configuration, kept in ``run.json``; a resumed run must have the same."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """What the run is made from; a resumed run must have the same."""


class Stopping:
    """Notes an interrupt instead of raising it, so that the step at hand ends and is saved.

    A second interrupt is raised at once. Signals reach only the main thread of a process; in
    another thread an interrupt is raised as ever.
    """

    def __init__(self, max_minutes: float = 0.0) -> None:
        self.interrupted = False
        self._deadline = time.monotonic() + 60 * max_minutes if max_minutes else float("inf")
        self._before: dict[int, Any] = {}

    @property
    def asked(self) -> bool:
        """Whether to stop after the step at hand."""
        return self.interrupted or time.monotonic() > self._deadline

    def __enter__(self) -> Stopping:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True


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


def make_optimiser(model: nn.Module, config: TrainingConfig) -> torch.optim.AdamW:
    """Make AdamW over the parameters that learn, with or without decay on vectors."""
    learning = [p for p in model.parameters() if p.requires_grad]
    decayed = [p for p in learning if config.decay_all or p.ndim > 1]
    spared = [p for p in learning if not config.decay_all and p.ndim <= 1]
    groups = [
        {"params": decayed, "weight_decay": config.weight_decay},
        {"params": spared, "weight_decay": 0.0},
    ]
    learning_groups = [group for group in groups if group["params"]]
    # one pass over the weights; step by step it takes eight times as long on a CPU
    return torch.optim.AdamW(learning_groups, lr=config.learning_rate, fused=True)


def learning_rate(step: int, n_steps: int, config: TrainingConfig) -> float:
    """Give the rate of an update, counted from 0; a resumed run needs no other state."""
    n_warm = round(config.warmup * n_steps)
    if step < n_warm:
        return config.learning_rate * (step + 1) / n_warm
    done = (step - n_warm) / max(n_steps - n_warm, 1)
    shape = {
        "constant": 1.0,
        "linear": 1 - done,
        "cosine": (1 + math.cos(math.pi * done)) / 2,
    }
    return config.learning_rate * shape[config.schedule]


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
        with attention_for_training(self.model, self.config.precision, self.accelerator.device):
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
                with autocast_in(self.config.precision, self.accelerator.device):
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
