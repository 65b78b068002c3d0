"""What may be chosen of a training run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from biograft.config import Above, AtLeast, Choice, Config, Ratio

SCHEDULES = ("constant", "linear", "cosine")
PRECISIONS = ("auto", "bf16", "fp32")

MAY_CHANGE = ("max_minutes", "save_every", "log_every", "keep")
"""What a resumed run may have otherwise: none of these changes what is learnt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig(Config):
    """How long, how fast, and what is kept.

    ``steps`` above 0 says how many updates are made, else ``epochs`` does. ``batch_size`` counts
    examples of one forward pass in one process; ``accumulate`` passes make an update. The rate
    rises over ``warmup`` (a share of all steps) and then follows ``schedule``. Weight decay
    spares biases and norms unless ``decay_all``. ``clip`` bounds the norm of the gradient (0: no
    bound). ``precision`` auto is bf16 where the processor computes in it. ``save_every``,
    ``eval_every`` and ``log_every`` count steps (0: at the end only); ``keep`` is how many saved
    states stay (0: all); ``max_minutes`` ends this session early, to be resumed (0: no limit).
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
