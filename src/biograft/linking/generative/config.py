"""What a linker that generates names reads and writes, how it learns, and how it is mixed."""

from __future__ import annotations

from dataclasses import dataclass, field

from biograft.errors import ConfigError
from biograft.nn.generation.config import BeamConfig
from biograft.nn.scratch_configs import NewSeq2Seq
from biograft.objectives.configs import NameGenerationConfig
from biograft.training.config import TrainingConfig

TARGETS = ("similar", "shortest", "random")
SHARED = ("all", "fewest")
PER_CONCEPT = ("all", "shortest", "random")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesConfig:
    """Which names of a store may be generated.

    ``lower`` writes them, and the mentions and their contexts, in small letters. A name of several
    concepts stays with all of them or, ``shared`` = ``fewest``, with the one that has the fewest
    names. ``per_concept`` leaves each concept its shortest name alone, or one drawn by ``seed``.
    """

    lower: bool = True
    shared: str = "all"
    per_concept: str = "all"
    types: tuple[str, ...] = ()
    """Semantic types, by code or label; none: all."""
    languages: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        _check_one_of("shared", self.shared, SHARED)
        _check_one_of("per_concept", self.per_concept, PER_CONCEPT)
        _check_least("seed", self.seed, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerativeTraining(TrainingConfig):
    """A training run with what the published one fixes for all data."""

    steps: int = 20_000
    batch_size: int = 8
    learning_rate: float = 1e-5
    schedule: str = "linear"
    clip: float = 0.1
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerativeConfig:
    """What a generative linker starts from, learns, reads and gives.

    The score of a name is ``share`` of what generation says, 0 to 1, and the rest of what the
    search says. With a share of 1 nothing is searched. ``fit_share`` chooses it on mentions held
    out; ``rescore`` names that the search found first are then scored exactly, though they were
    not generated.
    """

    model: str = ""
    """Folder or name of the encoder-decoder to start from."""
    new: NewSeq2Seq | None = None
    """What is made from scratch where no model is named."""
    max_source: int | None = None
    """Tokens of a text that are read at most; none: as many as the model takes."""
    max_target: int | None = None
    """Tokens of a prompt and a name together."""
    dropout: float | None = None
    """In attention too, in place of the model's own."""
    target: str = "similar"
    """Which name of the right concept is learnt: the one most ``similar`` to the mention in its
    letters, the ``shortest``, or one drawn at ``random`` for each mention."""
    names: NamesConfig = field(default_factory=NamesConfig)
    prompt: bool = True
    """Give the decoder *mention is* to go on from."""
    context_words: int = 384
    drop_overlapping: bool = False
    """Learn nothing from mentions that overlap others of their document."""
    bucket_batches: int = 0
    """Put examples of like length together within so many batches; 0: as they come."""
    objective: NameGenerationConfig = field(default_factory=NameGenerationConfig)
    training: GenerativeTraining = field(default_factory=GenerativeTraining)
    beam: BeamConfig = field(default_factory=BeamConfig)
    batch: int = 32
    """Mentions whose names are generated together."""
    share: float = 1.0
    fit_share: bool = False
    rescore: int = 0

    def __post_init__(self) -> None:
        _check_one_of("target", self.target, TARGETS)
        counts = {"context_words": 0, "bucket_batches": 0, "batch": 1, "rescore": 0}
        for name, least in counts.items():
            _check_least(name, getattr(self, name), least)
        if not 0 <= self.share <= 1:
            raise ConfigError(f"share: expected a number from 0 to 1, found {self.share}")
        if self.rescore and self.beam.renormalise:
            raise ConfigError(
                "rescore: names that are scored again have scores over the whole vocabulary, "
                "generated ones not; set rescore = 0 or beam.renormalise = false"
            )


def _check_one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ConfigError(f"{name}: expected one of {', '.join(known)}, found {value!r}")


def _check_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise ConfigError(f"{name}: expected at least {least}, found {value}")
