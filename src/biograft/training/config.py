"""The configuration of the training loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from biograft.config import Above, AtLeast, Choice, Config, Ratio

SCHEDULES = ("constant", "linear", "cosine")
PRECISIONS = ("auto", "bf16", "fp32")

MAY_CHANGE = ("max_minutes", "save_every", "log_every", "keep")
"""The fields that a resumed run may change: none of them changes the result of training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig(Config):
    """Length, learning rate, precision and checkpoints of a training run.

    ``steps`` above 0 is the number of updates, otherwise ``epochs`` determines it. ``batch_size``
    is the examples of one forward pass in one process; an update accumulates ``accumulate`` passes.
    The learning rate rises over ``warmup`` (a ratio of all steps) and then follows ``schedule``.
    Weight decay excludes biases and norms unless ``decay_all``. ``clip`` bounds the norm of the
    gradient (0: no bound). ``precision`` auto is bf16 where the processor supports it.
    ``save_every``, ``eval_every`` and ``log_every`` are in steps (0: at the end only); ``keep`` is
    the number of checkpoints (0: all); ``max_minutes`` ends this session early, to be resumed (0:
    no limit).
    """

    steps: Annotated[int, AtLeast(0)] = 0
    epochs: Annotated[int, AtLeast(1)] = 1
    batch_size: Annotated[int, AtLeast(1)] = 256
    accumulate: Annotated[int, AtLeast(1)] = 1
    learning_rate: Annotated[float, Above(0)] = 2e-5
    schedule: Annotated[str, Choice(*SCHEDULES)] = "constant"
    warmup: Ratio = 0.0
    weight_decay: Annotated[float, AtLeast(0)] = 0.01
    decay_all: bool = False
    clip: Annotated[float, AtLeast(0)] = 0.0
    precision: Annotated[str, Choice(*PRECISIONS)] = "auto"
    seed: Annotated[int, AtLeast(0)] = 33
    save_every: Annotated[int, AtLeast(0)] = 1000
    eval_every: Annotated[int, AtLeast(0)] = 0
    log_every: Annotated[int, AtLeast(0)] = 1
    keep: Annotated[int, AtLeast(0)] = 2
    max_minutes: Annotated[float, AtLeast(0)] = 0.0
