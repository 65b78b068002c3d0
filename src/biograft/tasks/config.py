"""What all kinds of tasks share: how a model is trained, which seeds and rates are tried."""

from __future__ import annotations

from dataclasses import dataclass, fields

from biograft.errors import ConfigError
from biograft.training.config import TrainingConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTraining(TrainingConfig):
    """A training run that is measured on dev after each epoch; the best epoch's weights stay.

    ``patience`` ends it when so many epochs in a row were no better than the best one (0: never);
    nothing is better than a score of 1.
    """

    epochs: int = 60
    batch_size: int = 16
    learning_rate: float = 3e-5
    schedule: str = "linear"
    warmup: float = 0.1
    clip: float = 1.0
    save_every: int = 0
    patience: int = 0

    def __post_init__(self) -> None:
        TrainingConfig.__post_init__(self)
        self._check("patience", self.patience >= 0, "a number of at least 0")
        for name in ("steps", "eval_every", "max_minutes"):
            why = "0 (a task counts epochs, and is resumed by seeds)"
            self._check(name, getattr(self, name) == 0, why)

    def for_run(self, seed: int) -> TrainingConfig:
        """Give the loop what it needs to know of a run."""
        shared = {field.name: getattr(self, field.name) for field in fields(TrainingConfig)}
        return TrainingConfig(**{**shared, "seed": seed})


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConfig:
    """Which learning rates are tried, and with which seeds the chosen one is run."""

    learning_rates: tuple[float, ...] = ()
    """Those to choose from by the score on dev; none: ``config.training.learning_rate``."""
    choosing_seeds: int = 1
    """With how many of the seeds the rates are compared."""
    seeds: tuple[int, ...] = (1,)

    def __post_init__(self) -> None:
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or min(self.seeds) < 0:
            raise ConfigError(f"seeds: expected different numbers of at least 0: {self.seeds}")
        if not 1 <= self.choosing_seeds <= len(self.seeds):
            raise ConfigError(
                f"choosing_seeds: expected 1 to {len(self.seeds)} (the number of seeds), "
                f"found {self.choosing_seeds}"
            )
        if any(not 0 < rate < float("inf") for rate in self.learning_rates):
            raise ConfigError(f"learning_rates: expected numbers above 0: {self.learning_rates}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """Where the examples are; paths count from the working directory."""

    train: tuple[str, ...] = ()
    dev: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    format: str = ""
    """Name of the format; empty: recognised by content."""
    has_parts: bool = False
    """For DDI: each file is the whole corpus, of which only the part asked for is taken."""
    dev_list: str = ""
    """For DDI: the list of pairs whose documents leave train for dev; implies ``has_parts``."""
    grouped: bool = False
    """For ChemProt: BLURB's groups in place of single relations."""
