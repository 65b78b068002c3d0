"""The configuration of the training loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from biograft.config import Above, AtLeast, Choice, Config, Ratio
from biograft.errors import ConfigError

SCHEDULES = ("constant", "linear", "cosine")
PRECISIONS = ("auto", "bf16", "fp16", "fp32")

MAY_CHANGE = ("max_minutes", "save_every", "log_every", "keep", "workers", "shard")
"""The fields that a resumed run may change: none of them changes the result of training, but for
rounding."""


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """Division of the batch of an update among processes and forward passes."""

    n_processes: int
    accumulate: int
    """Forward passes of each process in an update."""
    size: int
    """Examples of a forward pass."""

    def __str__(self) -> str:
        """Show the product: ``512 = 8 processes x 2 passes x 32 examples``."""
        batch = self.n_processes * self.accumulate * self.size
        processes = "process" if self.n_processes == 1 else "processes"
        passes = "pass" if self.accumulate == 1 else "passes"
        return (
            f"{batch} = {self.n_processes} {processes} x {self.accumulate} {passes} "
            f"x {self.size} examples"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig(Config):
    """Length, batch, learning rate, precision and checkpoints of a training run.

    ``steps`` above 0 is the number of updates, otherwise ``epochs`` determines it. ``batch_size``
    is the examples of one update, over all processes. A process runs at most ``device_batch_size``
    of them at once (0: no limit) and accumulates the gradients of several passes. The learning
    rate rises over ``warmup_steps`` updates, or over ``warmup_ratio`` of all updates if
    ``warmup_steps`` is 0, and then follows ``schedule``. Weight decay excludes biases and norms
    unless ``decay_all``. ``clip`` bounds the norm of the gradient (0: no bound). The first
    ``head_steps`` updates change only heads, so that a new head does not spoil a trained encoder
    (pre-training on text only).

    ``precision`` auto is bf16 where the hardware supports it; otherwise it is fp16 with loss
    scaling on a GPU, and fp32 on a processor. ``gradient_checkpointing`` computes the states of a
    layer again in the backward pass, which saves memory. ``shard`` divides weights, gradients and
    optimiser state among the processes (pre-training only). ``workers`` processes, at most one per
    core, prepare batches ahead (0: none). ``save_every``, ``eval_every`` and ``log_every`` are in
    steps (0: at the end only); ``keep`` is the number of checkpoints (0: all); ``max_minutes`` ends
    this session early, to be resumed (0: no limit).
    """

    steps: Annotated[int, AtLeast(0)] = 0
    epochs: Annotated[int, AtLeast(1)] = 1
    batch_size: Annotated[int, AtLeast(1)] = 256
    device_batch_size: Annotated[int, AtLeast(0)] = 0
    learning_rate: Annotated[float, Above(0)] = 2e-5
    schedule: Annotated[str, Choice(*SCHEDULES)] = "constant"
    warmup_ratio: Ratio = 0.0
    warmup_steps: Annotated[int, AtLeast(0)] = 0
    weight_decay: Annotated[float, AtLeast(0)] = 0.01
    decay_all: bool = False
    clip: Annotated[float, AtLeast(0)] = 0.0
    head_steps: Annotated[int, AtLeast(0)] = 0
    precision: Annotated[str, Choice(*PRECISIONS)] = "auto"
    gradient_checkpointing: bool = False
    shard: bool = False
    workers: Annotated[int, AtLeast(0)] = 0
    seed: Annotated[int, AtLeast(0)] = 33
    save_every: Annotated[int, AtLeast(0)] = 1000
    eval_every: Annotated[int, AtLeast(0)] = 0
    log_every: Annotated[int, AtLeast(0)] = 1
    keep: Annotated[int, AtLeast(0)] = 2
    max_minutes: Annotated[float, AtLeast(0)] = 0.0

    def plan_batch(self, n_processes: int = 1) -> BatchPlan:
        """Divide the batch among processes, into as few equal passes as the limit allows."""
        per_process, rest = divmod(self.batch_size, n_processes)
        if rest:
            raise ConfigError(
                f"training.batch_size: expected a multiple of the {n_processes} processes, found "
                f"{self.batch_size}; it counts the examples of all processes together"
            )
        limit = self.device_batch_size or per_process
        passes = next(n for n in range(1, per_process + 1) if _fits(per_process, n, limit))
        return BatchPlan(n_processes, passes, per_process // passes)

    def count_warmup(self, n_steps: int) -> int:
        """Count the updates over which the learning rate rises."""
        if self.warmup_steps > n_steps:
            raise ConfigError(
                f"training.warmup_steps: expected at most the {n_steps} steps of the training, "
                f"found {self.warmup_steps}; the learning rate would not reach its value"
            )
        return self.warmup_steps or round(self.warmup_ratio * n_steps)


def _fits(n_examples: int, n_passes: int, limit: int) -> bool:
    return n_examples % n_passes == 0 and n_examples // n_passes <= limit
