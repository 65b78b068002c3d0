"""What may be chosen of the classes of texts and pairs."""

from __future__ import annotations

from dataclasses import dataclass, field

from biograft.errors import ConfigError
from biograft.tasks.config import TaskTraining


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceConfig:
    """How the model is trained."""

    dropout: float = 0.1
    training: TaskTraining = field(default_factory=TaskTraining)

    def __post_init__(self) -> None:
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout: expected a share below 1, found {self.dropout}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingConfig(InferenceConfig):
    """Which of the two labels counts, and how the model is trained."""

    positive: str = "1"
    """The label that says that two texts say the same; F1 is its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassificationConfig(InferenceConfig):
    """Whether several classes may hold, and how the model is trained."""

    several: bool = False
    """Whether any number of classes may hold at once; found from examples that say so."""
    threshold: float = 0.5
    """Of several: the probability above which a class is taken to hold."""

    def __post_init__(self) -> None:
        InferenceConfig.__post_init__(self)
        if not 0 < self.threshold < 1:
            raise ConfigError(f"threshold: expected a share between 0 and 1: {self.threshold}")
