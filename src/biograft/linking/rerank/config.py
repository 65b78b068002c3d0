"""What a re-ranker reads of a mention and of a candidate, and how it is trained."""

from __future__ import annotations

from dataclasses import dataclass, field

from biograft.errors import ConfigError
from biograft.training.config import TrainingConfig

LEAST_LENGTH = 16
"""Tokens below which neither a mention nor a candidate could be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankTraining(TrainingConfig):
    """A training run whose examples are mentions: each is as many pairs as it has candidates."""

    epochs: int = 3
    batch_size: int = 4
    accumulate: int = 4
    schedule: str = "linear"
    warmup: float = 0.1
    clip: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankConfig:
    """Which candidates are ranked again, by what text, with which encoder."""

    encoder: str
    """Folder or name of the encoder to start from."""
    pooling: str = "cls"
    """How the states of a pair become one vector: ``cls`` or ``mean``."""
    n_candidates: int = 16
    """How many concepts of a mention are read; those behind keep their order."""
    max_length: int = 128
    """Tokens of a pair, the special ones included."""
    context_characters: int = 120
    """How much text is read on each side of a mention."""
    n_synonyms: int = 2
    """How many further names of a candidate are read."""
    definition_characters: int = 200
    """How much of a candidate's first definition is read."""
    nil_text: str = "none of these"
    """What is read in place of a candidate to learn that none fits."""
    held_out: float = 0.1
    """Share of the documents on which the mix with the first ranking is fitted."""
    training: RerankTraining = field(default_factory=RerankTraining)

    def __post_init__(self) -> None:
        least = {"n_candidates": 1, "max_length": LEAST_LENGTH, "context_characters": 0}
        for name, low in {**least, "n_synonyms": 0, "definition_characters": 0}.items():
            if getattr(self, name) < low:
                raise ConfigError(f"{name}: expected at least {low}, found {getattr(self, name)}")
        if not 0 < self.held_out < 1:
            raise ConfigError(f"held_out: expected a share between 0 and 1, found {self.held_out}")
        if not self.nil_text.strip():
            raise ConfigError("nil_text: expected words, found none")
