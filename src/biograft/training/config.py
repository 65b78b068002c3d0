"""What may be chosen of a training run."""

from __future__ import annotations

from dataclasses import dataclass

from biograft.errors import ConfigError

SCHEDULES = ("constant", "linear", "cosine")
PRECISIONS = ("auto", "bf16", "fp32")

MAY_CHANGE = ("max_minutes", "save_every", "log_every", "keep")
"""What a resumed run may have otherwise: none of these changes what is learnt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """How long, how fast, and what is kept.

    ``steps`` above 0 says how many updates are made, else ``epochs`` does. ``batch_size`` counts
    examples of one forward pass in one process; ``accumulate`` passes make an update. The rate
    rises over ``warmup`` (a share of all steps) and then follows ``schedule``. Weight decay
    spares biases and norms unless ``decay_all``. ``clip`` bounds the norm of the gradient (0: no
    bound). ``precision`` auto is bf16 where the processor computes in it. ``save_every``,
    ``eval_every`` and ``log_every`` count steps (0: at the end only); ``keep`` is how many saved
    states stay (0: all); ``max_minutes`` ends this session early, to be resumed (0: no limit).
    """

    steps: int = 0
    epochs: int = 1
    batch_size: int = 256
    accumulate: int = 1
    learning_rate: float = 2e-5
    schedule: str = "constant"
    warmup: float = 0.0
    weight_decay: float = 0.01
    decay_all: bool = False
    clip: float = 0.0
    precision: str = "auto"
    seed: int = 33
    save_every: int = 1000
    eval_every: int = 0
    log_every: int = 1
    keep: int = 2
    max_minutes: float = 0.0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "accumulate"):
            self._check(name, getattr(self, name) >= 1, "a number of at least 1")
        for name in ("steps", "seed", "save_every", "eval_every", "log_every", "keep"):
            self._check(name, getattr(self, name) >= 0, "a number of at least 0")
        for name in ("weight_decay", "clip", "max_minutes"):
            self._check(name, 0 <= getattr(self, name) < float("inf"), "a number of at least 0")
        self._check("learning_rate", 0 < self.learning_rate < float("inf"), "a number above 0")
        self._check("warmup", 0 <= self.warmup <= 1, "a share from 0 to 1")
        self._check("schedule", self.schedule in SCHEDULES, f"one of {', '.join(SCHEDULES)}")
        self._check("precision", self.precision in PRECISIONS, f"one of {', '.join(PRECISIONS)}")

    def _check(self, name: str, fine: bool, expected: str) -> None:
        if not fine:
            raise ConfigError(f"{name}: expected {expected}, found {getattr(self, name)!r}")
