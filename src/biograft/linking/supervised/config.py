"""Configuration of a trained ranker of candidates."""

from __future__ import annotations

from dataclasses import dataclass

from biograft.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class RankerConfig:
    """Settings of the network and its training."""

    n_names: int = 80
    """Number of names retrieved from each generator for a mention."""
    folds: int = 5
    """Number of folds of documents; features never count a mention's own fold."""
    hidden: int = 16
    """Size of the hidden layer."""
    epochs: int = 30
    batch_size: int = 256
    learning_rate: float = 5e-3
    weight_decay: float = 1e-3
    ensemble: int = 3
    """Number of networks with different initial weights, whose scores are averaged."""
    seed: int = 0

    def __post_init__(self) -> None:
        minima = {"n_names": 1, "folds": 2, "hidden": 1, "epochs": 1, "batch_size": 1}
        for field, low in {**minima, "ensemble": 1}.items():
            if getattr(self, field) < low:
                raise ConfigError(f"{field}: expected at least {low}, found {getattr(self, field)}")
        for field in ("learning_rate", "weight_decay"):
            if not 0 <= getattr(self, field) < 1:
                raise ConfigError(f"{field}: expected 0 to 1, found {getattr(self, field)}")
