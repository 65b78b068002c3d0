"""Configuration of a trained ranker of candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from biograft.config import AtLeast, Config, Range


@dataclass(frozen=True, kw_only=True)
class RankerConfig(Config):
    """Settings of the network and its training."""

    n_names: Annotated[int, AtLeast(1)] = 80
    """Number of names retrieved from each generator for a mention."""
    folds: Annotated[int, AtLeast(2)] = 5
    """Number of folds of documents; features never count a mention's own fold."""
    hidden: Annotated[int, AtLeast(1)] = 16
    """Size of the hidden layer."""
    epochs: Annotated[int, AtLeast(1)] = 30
    batch_size: Annotated[int, AtLeast(1)] = 256
    learning_rate: Annotated[float, Range(min=0, below=1)] = 5e-3
    weight_decay: Annotated[float, Range(min=0, below=1)] = 1e-3
    ensemble: Annotated[int, AtLeast(1)] = 3
    """Number of networks with different initial weights, whose scores are averaged."""
    seed: int = 0
