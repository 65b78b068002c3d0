"""Configuration of a re-ranker: its inputs, its encoder and its training."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from biograft.config import AtLeast, Choice, Config, Range, Ratio, check_fields
from biograft.errors import ConfigError
from biograft.recipe import SCHEDULES, TrainingConfig

MIN_LENGTH = 16
"""Minimum number of tokens of a pair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankTraining(TrainingConfig):
    """Training of a re-ranker; an example is a mention with all its candidates."""

    epochs: Annotated[int, AtLeast(1)] = 3
    batch_size: Annotated[int, AtLeast(1)] = 16
    device_batch_size: Annotated[int, AtLeast(0)] = 4
    schedule: Annotated[str, Choice(*SCHEDULES)] = "linear"
    warmup_ratio: Ratio = 0.1
    clip: Annotated[float, AtLeast(0)] = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankConfig(Config):
    """Settings of a re-ranker."""

    encoder: str
    """Folder or name of the encoder to start from."""
    pooling: str = "cls"
    """Pooling of the states of a pair: ``cls`` or ``mean``."""
    n_candidates: Annotated[int, AtLeast(1)] = 16
    """Number of concepts of a mention that are re-ranked; those behind keep their order."""
    n_train_candidates: Annotated[int, AtLeast(0)] = 0
    """Candidates of a mention in each epoch of training: the correct ones and a random sample of
    the others; 0: all."""
    max_length: Annotated[int, AtLeast(MIN_LENGTH)] = 128
    """Maximum number of tokens of a pair, including special tokens."""
    context_characters: Annotated[int, AtLeast(0)] = 120
    """Characters of context on each side of a mention."""
    n_synonyms: Annotated[int, AtLeast(0)] = 2
    """Number of further names of a candidate in its text."""
    definition_characters: Annotated[int, AtLeast(0)] = 200
    """Maximum number of characters of a candidate's definition in its text."""
    nil_text: str = "none of these"
    """The text of NIL, scored like a candidate."""
    held_out: Annotated[float, Range(above=0, below=1)] = 0.1
    """Fraction of the documents on which the mix with the first ranking is fitted."""
    training: RerankTraining = field(default_factory=RerankTraining)

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.nil_text.strip():
            raise ConfigError("nil_text: expected words, found none")
