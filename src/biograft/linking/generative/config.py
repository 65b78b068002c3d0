"""Configuration of a generative linker: names, training, generation, mixing with a search."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from biograft.config import Above, AtLeast, Choice, Config, Range, Ratio, check_fields
from biograft.errors import ConfigError
from biograft.models.generation.config import BeamConfig
from biograft.models.scratch_configs import NewDecoder, NewSeq2Seq
from biograft.recipe import SCHEDULES, TrainingConfig
from biograft.training.objectives.configs import NameGenerationConfig

TARGETS = ("similar", "shortest", "random")
SHARED = ("all", "fewest")
PER_CONCEPT = ("all", "shortest", "random")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesConfig(Config):
    """Names of a knowledge base that may be generated.

    ``lower`` lower-cases names, mentions and contexts. A name of several concepts belongs to all
    of them or, with ``shared`` = ``fewest``, to the one with the fewest names. ``per_concept``
    keeps one name per concept: the shortest, or a random one by ``seed``.
    """

    lower: bool = True
    shared: Annotated[str, Choice(*SHARED)] = "all"
    per_concept: Annotated[str, Choice(*PER_CONCEPT)] = "all"
    types: tuple[str, ...] = ()
    """Semantic types, by code or label; empty means all."""
    languages: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    seed: Annotated[int, AtLeast(0)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerativeTraining(TrainingConfig):
    """Training with the published settings that are the same for all data sets."""

    steps: Annotated[int, AtLeast(0)] = 20_000
    batch_size: Annotated[int, AtLeast(1)] = 8
    learning_rate: Annotated[float, Above(0)] = 1e-5
    schedule: Annotated[str, Choice(*SCHEDULES)] = "linear"
    clip: Annotated[float, AtLeast(0)] = 0.1
    seed: Annotated[int, AtLeast(0)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerativeConfig(Config):
    """Settings of a generative linker.

    The score of a name is ``w * generation + (1 - w) * search``, where w is ``generation_weight``
    from 0 to 1. With 1 there is no search. ``fit_weight`` chooses w on held-out mentions. The first
    ``rescore`` names of the search are scored by the model, even if they were not generated;
    without ``generate`` only they are, and the model re-ranks the search.
    """

    model: str = ""
    """Folder or name of the encoder-decoder to start from, or of an encoder."""
    decoder: NewDecoder | None = None
    """The decoder to add if ``model`` is an encoder."""
    new: NewSeq2Seq | None = None
    """A model to build from scratch, if no ``model`` is given."""
    max_source: int | None = None
    """Maximum number of tokens of a text; None means the limit of the model."""
    max_target: int | None = None
    """Maximum number of tokens of a prompt and a name together."""
    dropout: float | None = None
    """Dropout, also of attention, instead of the model's own."""
    target: Annotated[str, Choice(*TARGETS)] = "similar"
    """The training target among the names of the correct concept: the one most ``similar`` to the
    mention by character n-grams, the ``shortest``, or a ``random`` one for each mention."""
    names: NamesConfig = field(default_factory=NamesConfig)
    prompt: bool = True
    """Prompt the decoder with *mention is*."""
    context_words: Annotated[int, AtLeast(0)] = 384
    drop_overlapping: bool = False
    """Do not train on mentions that overlap others of their document."""
    bucket_batches: Annotated[int, AtLeast(0)] = 0
    """Group examples of similar length within this number of batches; 0: no grouping."""
    objective: NameGenerationConfig = field(default_factory=NameGenerationConfig)
    training: GenerativeTraining = field(default_factory=GenerativeTraining)
    beam: BeamConfig = field(default_factory=BeamConfig)
    batch: Annotated[int, AtLeast(1)] = 32
    """Number of mentions in a batch of generation; names that are rescored count as beams."""
    generation_weight: Ratio = 1.0
    fit_weight: bool = False
    rescore: Annotated[int, AtLeast(0)] = 0
    generate: bool = True
    """Search all names by beam; if not, names are ranked within the first of the search."""
    names_ratio: Annotated[float, Range(min=0, below=1)] = 0.0
    """Fraction of the training examples made from names of the store, as in pre-training."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.generate and not self.rescore:
            raise ConfigError(
                "generate: false ranks the first names of the search; set rescore to their number"
            )
        if self.generate and self.rescore and self.beam.renormalise:
            raise ConfigError(
                "rescore: rescored names have probabilities over the whole vocabulary, generated "
                "ones not; set rescore = 0 or beam.renormalise = false"
            )
