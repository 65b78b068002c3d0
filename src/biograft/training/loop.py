"""The training loop: updates, evaluation, checkpoints, stop and resume."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Generic

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn
from transformers import PreTrainedModel

from biograft.compute import peak_bytes
from biograft.display import Shown
from biograft.errors import BiograftError, ConfigError
from biograft.models.precision import attention_for_training, autocast_in, loss_scaler
from biograft.progress import Progress
from biograft.recipe import BatchPlan, TrainingConfig
from biograft.training.batches import Batch, BatchSource, endless
from biograft.training.checkpoint import (
    Cursor,
    TrainingState,
    find_checkpoints,
    load_checkpoint,
    remove_unfinished,
    save_checkpoint,
)
from biograft.training.processes import make_accelerator
from biograft.training.run_folder import (
    MetricsLog,
    check_run,
    is_first_process,
    sole_run,
    start_run,
)
from biograft.training.sharding import (
    exchange_gradients,
    is_sharded,
    shard_model,
    unshard_model,
    whole_tensor,
)
from biograft.training.tasks.results import numbers_of
from biograft.training.trackers import check_trackers, track, tracking


@dataclass(frozen=True, slots=True)
class Task(Generic[Batch]):
    """A training task: a model, batches, and the loss of a batch.

    ``compute_loss`` is called with the model as it is run (wrapped if there are several
    processes). ``evaluate`` is called without gradient, the model in inference mode.

    Losses that are means over a varying number of items (masked tokens, mentions) need ``counts``:
    the number of items of a batch, by name. ``compute_loss`` then also receives the multiplier of
    each mean, so that an update is the mean over all items of its batches, across processes.
    """

    model: nn.Module
    """Model to train."""
    source: BatchSource[Batch]
    """Source of the batches."""
    compute_loss: Callable[..., tuple[Tensor, dict[str, float]]]
    """Takes model and batch, and multipliers by name where there are ``counts``."""
    counts: Callable[[Batch], Mapping[str, int]] | None = None
    evaluate: Callable[[], dict[str, Any]] | None = None
    after_epoch: Callable[[int], tuple[dict[str, Any], bool]] | None = None
    """Called like ``evaluate`` at the end of an epoch, with the number of finished epochs; returns
    what to log, and whether to stop the training."""
    described: Mapping[str, Any] = field(default_factory=dict)
    """The whole configuration, saved in ``run.json``; a resumed run must have the same."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """The inputs of the run, by hashes; a resumed run must have the same."""
    divisible: bool = True
    """Whether a batch may be divided into passes and among processes. Where a loss compares the
    examples of a batch, each process reads all of it, and ``device_batch_size`` makes no passes."""
    may_shard: bool = False
    """Whether the model is only run as a whole in training, so that it can be sharded."""
    body: Sequence[nn.Parameter] = ()
    """The parameters that are not trained in the first ``head_steps``: all but those of heads."""


class StopSignal:
    """Records an interrupt instead of raising it, so that the current step ends and is saved.

    A second interrupt is raised at once. Signals reach only the main thread of a process; in other
    threads nothing changes.
    """

    def __init__(self, max_minutes: float = 0.0) -> None:
        self.interrupted = False
        self._deadline = time.monotonic() + 60 * max_minutes if max_minutes else float("inf")
        self._handlers: dict[int, Any] = {}

    @property
    def requested(self) -> bool:
        """Whether to stop after the current step."""
        return self.interrupted or time.monotonic() > self._deadline

    def __enter__(self) -> StopSignal:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._handlers[number] = signal.signal(number, self._record)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _record(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True


class Evaluations:
    """Runs the evaluations of a task when they are due, once each, and logs their results.

    Args:
        task: Task that is evaluated.
        every: Steps between evaluations; 0: only at the end.
        start: Where this session starts.
        report: Receives the results, with their step.
    """

    def __init__(
        self,
        task: Task[Batch],
        every: int,
        start: Cursor,
        report: Callable[[dict[str, Any]], None],
    ) -> None:
        self._task, self._every, self._report = task, every, report
        self._start, self._epoch = start, start.epoch
        self.newest: dict[str, Any] | None = None

    @torch.no_grad()
    def run_due(self, cursor: Cursor, *, last: bool) -> bool:
        """Run the evaluations that are due, in inference mode; return whether to stop.

        Args:
            cursor: Step, epoch and position.
            last: Whether this is the end.
        """
        new = cursor.step > self._start.step or cursor.step == 0  # a resumed run did it before
        if self._task.evaluate and new and is_due(self._every, cursor.step, last=last):
            self._task.model.eval()
            self._write(cursor, self._task.evaluate())
        if self._task.after_epoch is None or cursor.epoch == self._epoch:
            return False
        self._epoch = cursor.epoch
        self._task.model.eval()
        results, stop = self._task.after_epoch(cursor.epoch)
        self._write(cursor, results)
        return stop

    def _write(self, cursor: Cursor, results: dict[str, Any]) -> None:
        self.newest = results
        self._report({"step": cursor.step, "evaluation": results})


def is_due(every: int, step: int, *, last: bool) -> bool:
    """Whether an action of every so many steps, and of the end, is due.

    Args:
        every: Number of steps; 0: only at the end.
        step: Steps done.
        last: Whether this is the end.
    """
    return last or (every > 0 and step % every == 0)


def make_optimiser(model: nn.Module, config: TrainingConfig) -> torch.optim.AdamW:
    """Make AdamW over the trainable parameters, with or without decay of vectors.

    Args:
        model: Model to train.
        config: Learning rate, decay and so on.
    """
    trainable = [p for p in model.parameters() if p.requires_grad]
    decayed = [p for p in trainable if config.decay_all or p.ndim > 1]
    not_decayed = [p for p in trainable if not config.decay_all and p.ndim <= 1]
    groups = [
        {"params": decayed, "weight_decay": config.weight_decay},
        {"params": not_decayed, "weight_decay": 0.0},
    ]
    used = [group for group in groups if group["params"]]
    # one pass over the weights; without it, it takes eight times as long on a CPU
    return torch.optim.AdamW(used, lr=config.learning_rate, fused=True)


def learning_rate(step: int, n_steps: int, config: TrainingConfig) -> float:
    """Compute the learning rate of an update, counted from 0; it needs no other state.

    Args:
        step: Number of the update, from 0.
        n_steps: Number of updates of the run.
        config: Settings of the training.
    """
    n_warm = config.count_warmup(n_steps)
    if step < n_warm:
        return config.learning_rate * (step + 1) / n_warm
    done = (step - n_warm) / max(n_steps - n_warm, 1)
    shape = {
        "constant": 1.0,
        "linear": 1 - done,
        "cosine": (1 + math.cos(math.pi * done)) / 2,
    }
    return config.learning_rate * shape[config.schedule]


def enable_gradient_checkpointing(model: nn.Module) -> None:
    """Let every transformer in a model compute the states of its layers again when needed."""
    encoders = [m for m in model.modules() if isinstance(m, PreTrainedModel)]
    able = [encoder for encoder in encoders if encoder.supports_gradient_checkpointing]
    if not able:
        raise ConfigError(
            "training.gradient_checkpointing: expected false, because this model has no "
            "transformer that supports it, found true"
        )
    for encoder in able:
        # its name in older transformers is gradient_checkpointing_enable
        enable = getattr(encoder, "activation_checkpointing_enable", None)
        (enable or encoder.gradient_checkpointing_enable)({"use_reentrant": False})


_MIN_LOSS_SCALE = 1.0
"""Below it, fp16 gradients overflow without scaling: the training diverged."""


class Updater(Generic[Batch]):
    """Makes one update after the other, from a cursor on.

    Args:
        task: Model, batches and loss.
        state: Model and optimiser.
        config: Settings of the training.
        accelerator: Processes and devices.
        start: Where this session starts.
    """

    def __init__(
        self,
        task: Task[Batch],
        state: TrainingState,
        config: TrainingConfig,
        accelerator: Accelerator,
        start: Cursor,
    ) -> None:
        self.task, self.optimiser, self.config = task, state.optimiser, config
        self.accelerator, self.cursor = accelerator, start
        self._scaler, self._n_passes = state.scaler, state.accumulate
        self._sharded = is_sharded(task.model)
        self.model: nn.Module = task.model if self._sharded else accelerator.prepare(task.model)
        self._batches = endless(task.source, start.epoch, start.position, config.workers)

    def update(self, rate: float, stop_signal: StopSignal) -> tuple[dict[str, Any], bool]:
        """Update once; return what to log, and whether any process should stop.

        Args:
            rate: Learning rate.
            stop_signal: Says whether this process should stop.
        """
        began, step = time.perf_counter(), self.cursor.step
        batches = [next(self._batches) for _ in range(self._n_passes)]
        waited = time.perf_counter() - began
        self._seed(step)
        self.model.train()
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.zero_grad(set_to_none=True)
        with attention_for_training(self.model, self.config.precision, self.accelerator.device):
            loss, stats, n_rows = self._backward([batch for batch, _, _ in batches])
        _, epoch, position = batches[-1]
        self.cursor = Cursor(step + 1, epoch, position)
        if step < self.config.head_steps:
            for parameter in self.task.body:
                parameter.grad = None  # an optimiser leaves it as it is
        norm = self._clip()
        # all processes must agree on a loss that is not finite, and on an interrupt
        values = torch.tensor(
            [loss, float(stop_signal.requested), *stats.values()], dtype=torch.float64
        )
        values = values.to(self.accelerator.device)
        loss, stop, *means = self.accelerator.reduce(values, "mean").tolist()
        stats = dict(zip(stats, means, strict=True))
        self._refuse_divergence(loss, norm)
        self._scaler.step(self.optimiser)  # under fp16 it leaves out an update that overflows
        self._scaler.update()
        rows = n_rows * (self.accelerator.num_processes if self.task.divisible else 1)
        return {
            "step": self.cursor.step,
            "epoch": self.cursor.epoch,
            "loss": loss,
            "learning_rate": rate,
            "gradient_norm": norm,
            **stats,
            "rows": rows,
            "rows_per_second": round(rows / (time.perf_counter() - began), 1),
            "data_seconds": round(waited, 4),
            **({"loss_scale": self._scaler.get_scale()} if self._scaler.is_enabled() else {}),
            "peak_memory_mb": _peak_memory(),
        }, stop > 0

    def _backward(self, batches: list[Batch]) -> tuple[float, dict[str, float], int]:
        """Accumulate the gradients of one update; return loss, statistics and rows."""
        total, sums, n_rows, n_passes = 0.0, Counter[str](), 0, len(batches)
        for number, (batch, multipliers) in enumerate(
            zip(batches, self._multipliers(batches), strict=True), start=1
        ):
            waiting = number < n_passes  # processes exchange gradients once an update
            if self._sharded:
                exchange_gradients(self.model, wanted=not waiting)
            with self.accelerator.no_sync(self.model) if waiting else nullcontext():
                with autocast_in(self.config.precision, self.accelerator.device):
                    loss, stats = self.task.compute_loss(self.model, batch, *multipliers)
                self.accelerator.backward(self._scaler.scale(loss / n_passes))
            total += float(loss.detach()) / n_passes
            sums.update({name: value / n_passes for name, value in stats.items()})
            n_rows += len(batch)  # type: ignore[arg-type]
        return total, dict(sums), n_rows

    def _refuse_divergence(self, loss: float, norm: float) -> None:
        """Refuse a loss or gradient that is not finite; fp16 may overflow until it is rescaled."""
        scaled = self._scaler.is_enabled() and self._scaler.get_scale() >= _MIN_LOSS_SCALE
        if math.isfinite(loss) and (math.isfinite(norm) or scaled):
            return
        raise BiograftError(
            f"the training diverged at step {self.cursor.step}: loss {loss}, norm of the gradient "
            f"{norm}; lower training.learning_rate, bound the gradient (training.clip) or set "
            "training.precision to fp32, and start a new run; the last checkpoint is kept"
        )

    def _multipliers(self, batches: list[Batch]) -> list[tuple[dict[str, float], ...]]:
        """Compute the multipliers of the means of each batch, where the task counts items."""
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
        self._scaler.unscale_(self.optimiser)
        parameters = [p for p in self.model.parameters() if p.grad is not None]
        bound = self.config.clip or math.inf
        norm: Tensor = torch.nn.utils.clip_grad_norm_(parameters, bound)
        return float(whole_tensor(norm))

    def _seed(self, step: int) -> None:
        """Seed the random numbers of a step by its index, so that they need not be saved."""
        key = [self.config.seed, self.accelerator.process_index, step]
        torch.manual_seed(int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0] >> 1))


def _peak_memory() -> float:
    """Return the peak memory so far, in MB: of the GPU if there is one."""
    if torch.cuda.is_available():
        return round(torch.cuda.max_memory_allocated() / 1e6, 1)
    return round(peak_bytes() / 1e6, 1)


@dataclass(frozen=True, slots=True, repr=False)
class TrainingResult(Shown):
    """The result of a training session."""

    step: int
    """Number of updates so far."""
    n_steps: int
    """Number of updates of the whole training."""
    batch: BatchPlan
    """Division of the batch."""
    loss: float | None
    """The loss of the last update, also if an earlier session made it; None without one."""
    seconds: float
    """Duration of this session."""
    checkpoint: Path
    """Folder of the last checkpoint."""
    evaluation: dict[str, Any] | None
    """Metrics of the last evaluation; None without one."""

    @property
    def finished(self) -> bool:
        """Whether all steps are done; otherwise the run can be resumed."""
        return self.step >= self.n_steps

    def metrics(self) -> dict[str, Any]:
        """Return what a run that is repeated gives again: steps, batch, loss, evaluation."""
        known = {"step": self.step, "batch_size": self.batch.size, "loss": self.loss}
        numbers = (int, float)
        evaluated = {
            name: value
            for name, value in (self.evaluation or {}).items()
            if isinstance(value, numbers) and not isinstance(value, bool)
        }
        return {key: value for key, value in {**known, **evaluated}.items() if value is not None}


def train(
    task: Task[Batch],
    config: TrainingConfig,
    run: Path,
    *,
    resume: bool = False,
    progress: Progress | None = None,
) -> TrainingResult:
    """Train until all steps are done, the time limit or an interrupt; then save a checkpoint.

    Args:
        task: Model, batches and loss.
        config: Settings of the training.
        run: Folder of the run.
        resume: Continue from its last checkpoint.
        progress: Progress of training.
    """
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
    check_trackers(config.trackers if is_first_process() else ())
    accelerator = make_accelerator(run, config.trackers)
    main = accelerator.is_main_process
    plan = config.plan_batch(accelerator.num_processes, divisible=task.divisible)
    progress = progress or Progress(enabled=main)
    n_steps = count_steps(config, len(task.source), plan)
    config.count_warmup(n_steps)  # refuses a warm-up that is too long
    if config.head_steps and not task.body:
        raise ConfigError(
            "training.head_steps: expected 0, because only pre-training on text has a head that "
            f"can be trained first, found {config.head_steps}"
        )
    task.model.to(accelerator.device)
    if config.gradient_checkpointing:
        enable_gradient_checkpointing(task.model)
    if config.shard:
        _shard(task, accelerator)
    scaler = loss_scaler(config.precision, accelerator.device)
    optimiser = make_optimiser(task.model, config)
    state = TrainingState(task.model, optimiser, scaler, plan.accumulate)
    start = _open_run(task, state, run, resume=resume, main=main)
    accelerator.wait_for_everyone()
    updater = Updater(task, state, config, accelerator, start)
    log = MetricsLog(run, start.step, enabled=main)

    def report(entry: dict[str, Any]) -> None:
        log.write(entry)
        track(accelerator, entry)
        scores = numbers_of({"dev": entry.get("evaluation", {})})
        progress.values.update([pair for pair in scores if pair[0] not in _COUNTS][:1])

    evaluations = Evaluations(task, config.eval_every, start, report)
    began, loss, stop = time.perf_counter(), None, False
    progress.start("training")
    with (
        tracking(accelerator, config, task.described),
        StopSignal(config.max_minutes) as stop_signal,
    ):
        while True:
            cursor = updater.cursor
            last = cursor.step >= n_steps
            stop = evaluations.run_due(cursor, last=last) or stop
            if cursor.step > start.step and (
                stop or is_due(config.save_every, cursor.step, last=last)
            ):
                save_checkpoint(run, cursor, state, keep=config.keep, main=main)
                accelerator.wait_for_everyone()
            if last or stop:
                break
            entry, stop = updater.update(learning_rate(cursor.step, n_steps, config), stop_signal)
            progress.values["loss"] = loss = entry["loss"]
            if is_due(config.log_every, entry["step"], last=entry["step"] >= n_steps):
                report({**entry, "seconds": round(time.perf_counter() - began, 3)})
            progress.advance(entry["rows"], entry["step"] / n_steps)
    progress.finish()
    if is_sharded(task.model):
        unshard_model(task.model)
    if stop_signal.interrupted:
        raise KeyboardInterrupt(f"step {cursor.step} is saved in {run}")
    seconds = time.perf_counter() - began
    saved, logged = find_checkpoints(run)[-1], log.at(cursor.step)  # also of an earlier session
    loss = logged.get("loss") if loss is None else loss
    evaluation = evaluations.newest or logged.get("evaluation")
    return TrainingResult(cursor.step, n_steps, plan, loss, seconds, saved, evaluation)


_COUNTS = ("dev.epoch", "dev.n")
"""Numbers of an evaluation that are no scores."""


def _shard(task: Task[Batch], accelerator: Accelerator) -> None:
    """Divide the model of a task among the processes; one process keeps it whole."""
    if not task.may_shard:
        raise ConfigError(
            "training.shard: expected false, because only pre-training is sharded, found true"
        )
    if accelerator.num_processes > 1:
        shard_model(task.model, accelerator.device)


def count_steps(config: TrainingConfig, n_batches: int, plan: BatchPlan) -> int:
    """Count the updates of a run; the last one of an epoch may include batches of the next.

    Args:
        config: Settings of the training: steps, or epochs.
        n_batches: Number of batches in an epoch.
        plan: Batches in an update.
    """
    if n_batches < 1:
        raise ConfigError("training: found no batch to train on")
    return config.steps or -(-config.epochs * n_batches // plan.accumulate)


def _open_run(
    task: Task[Batch], state: TrainingState, run: Path, *, resume: bool, main: bool
) -> Cursor:
    """Start a run, or load its newest checkpoint."""
    if resume:
        check_run(run, task.described, task.provenance)
        if main:
            remove_unfinished(run)
        saved = find_checkpoints(run)
        return load_checkpoint(saved[-1], state) if saved else Cursor()
    if main:
        start_run(run, task.described, task.provenance)
    return Cursor()
