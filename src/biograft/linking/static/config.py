"""Configuration of a static encoder and of its distillation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from biograft.config import Above, AtLeast, Config, Weight
from biograft.recipe import TrainingConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticTraining(TrainingConfig):
    """Training with the defaults of distillation; a batch counts names."""

    epochs: Annotated[int, AtLeast(1)] = 20
    batch_size: Annotated[int, AtLeast(1)] = 1024
    learning_rate: Annotated[float, Above(0)] = 5e-3
    weight_decay: Annotated[float, AtLeast(0)] = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticConfig(Config):
    """Settings of a static encoder and of its distillation.

    A name is the weighted mean of its tokens' vectors (``width`` numbers each), projected to the
    width of the teacher, plus a perceptron with ``hidden`` units. The tokens are the teacher's, and
    the words of the training texts that it splits: those that occur in at least
    ``min_word_count`` texts, at most ``max_words`` of them.

    The loss is the cosine distance to the teacher's vector, plus ``similarity_weight`` times the
    divergence of the similarities in a batch from the teacher's, as distributions over the other
    names with ``temperature``.
    """

    width: Annotated[int, AtLeast(1)] = 128
    hidden: Annotated[int, AtLeast(1)] = 512
    max_length: Annotated[int, AtLeast(1)] = 64
    """Maximum number of tokens of a name, words included; the rest is left out."""
    min_word_count: Annotated[int, AtLeast(1)] = 2
    max_words: Annotated[int, AtLeast(0)] = 50_000
    languages: tuple[str, ...] = ()
    """Names in these languages only; none: all."""
    similarity_weight: Weight = 1.0
    temperature: Annotated[float, Above(0)] = 0.05
    training: StaticTraining = field(default_factory=StaticTraining)

    @property
    def similarity(self) -> str:
        """The similarity of vectors that the encoder is trained for."""
        return "cosine"
