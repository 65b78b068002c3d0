"""How a ranker of candidates is trained."""

from __future__ import annotations

from dataclasses import dataclass

from biograft.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class RankerConfig:
    """What is trained, on how much, for how long."""

    n_names: int = 80
    """How many names each generator gives for a mention."""
    folds: int = 5
    """Documents are dealt to so many folds; see ``training``."""
    hidden: int = 16
    epochs: int = 30
    batch_size: int = 256
    learning_rate: float = 5e-3
    weight_decay: float = 1e-3
    ensemble: int = 3
    """So many networks from different starts, whose scores are averaged."""
    seed: int = 0

    def __post_init__(self) -> None:
        least = {"n_names": 1, "folds": 2, "hidden": 1, "epochs": 1, "batch_size": 1, "ensemble": 1}
        for field, low in least.items():
            if getattr(self, field) < low:
                raise ConfigError(f"{field}: expected at least {low}, found {getattr(self, field)}")
        for field in ("learning_rate", "weight_decay"):
            if not 0 <= getattr(self, field) < 1:
                raise ConfigError(f"{field}: expected 0 to 1, found {getattr(self, field)}")
