"""Configurations of tasks: training, search over learning rates and seeds, data, each task."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Annotated, TypeAlias

from biograft.config import Above, AtLeast, Choice, Config, Range, Ratio, check_fields
from biograft.errors import ConfigError
from biograft.recipe import SCHEDULES, TrainingConfig

Dropout: TypeAlias = Annotated[float, Range(min=0, below=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTraining(TrainingConfig):
    """Training with evaluation on dev after each epoch; the weights of the best epoch are kept.

    Training stops early after ``patience`` epochs without improvement (0: never), or at a dev
    score of 1.
    """

    epochs: Annotated[int, AtLeast(1)] = 60
    batch_size: Annotated[int, AtLeast(1)] = 16
    learning_rate: Annotated[float, Above(0)] = 3e-5
    schedule: Annotated[str, Choice(*SCHEDULES)] = "linear"
    warmup_ratio: Ratio = 0.1
    clip: Annotated[float, AtLeast(0)] = 1.0
    save_every: Annotated[int, AtLeast(0)] = 0
    patience: Annotated[int, AtLeast(0)] = 0

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("steps", "eval_every", "max_minutes"):
            if value := getattr(self, name):
                raise ConfigError(
                    f"{name}: expected 0 (a task counts epochs, and is resumed by seeds), "
                    f"found {value}"
                )

    def for_run(self, seed: int) -> TrainingConfig:
        """Return the configuration of the training loop for one seed."""
        shared = {field.name: getattr(self, field.name) for field in fields(TrainingConfig)}
        return TrainingConfig(**{**shared, "seed": seed})


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConfig(Config):
    """The search over learning rates, and the seeds of the final runs."""

    learning_rates: tuple[Annotated[float, Above(0)], ...] = ()
    """Candidates, selected by the dev score; empty: ``config.training.learning_rate``."""
    choosing_seeds: int = 1
    """Number of seeds that the search uses."""
    seeds: tuple[Annotated[int, AtLeast(0)], ...] = (1,)

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise ConfigError(f"seeds: expected one or several different numbers: {self.seeds}")
        if not 1 <= self.choosing_seeds <= len(self.seeds):
            raise ConfigError(
                f"choosing_seeds: expected 1 to {len(self.seeds)} (the number of seeds), "
                f"found {self.choosing_seeds}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDataConfig:
    """The files of the examples; paths are relative to the working directory."""

    train: tuple[str, ...] = ()
    dev: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    format: str = ""
    """Name of the format; empty: recognised by content."""
    has_splits: bool = False
    """For DDI: each file holds the whole corpus, of which one split is read."""
    dev_list: str = ""
    """For DDI: a list of pairs; their documents are dev, not train. Implies ``has_splits``."""
    grouped: bool = False
    """For ChemProt: the relation groups of BLURB instead of single relations."""
    schema: str = ""
    """For CMeIE: the schema file, whose relations are the labels instead of predicates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NerConfig(Config):
    """Configuration of named entity recognition."""

    head: Annotated[str, Choice("softmax", "crf", "spans")] = "softmax"
    """``softmax``: each word is tagged by itself; ``crf``: linear-chain CRF; ``spans``: every span
    is scored, which finds nested entities."""
    scheme: Annotated[str, Choice("bio", "bioes")] = "bio"
    """Tag scheme of softmax and crf."""
    types: Annotated[str, Choice("ignore", "keep")] = "ignore"
    """``ignore``: one entity type, as in BLURB; ``keep``: the types of the files."""
    read: Annotated[str, Choice("passages", "sentences", "documents")] = "passages"
    """The unit of text: ``passages`` of the files (sentences of CoNLL, title and abstract), their
    ``sentences``, or whole ``documents``."""
    overlap: Annotated[int, AtLeast(0)] = 64
    """Tokens shared by successive windows of a text that exceeds the encoder's maximum length."""
    max_span: Annotated[int, AtLeast(1)] = 64
    """Maximum length of an entity in words, for ``spans``."""
    dropout: Dropout = 0.1
    training: TaskTraining = field(default_factory=TaskTraining)


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceConfig(Config):
    """Configuration of natural language inference."""

    dropout: Dropout = 0.1
    training: TaskTraining = field(default_factory=TaskTraining)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingConfig(InferenceConfig):
    """Configuration of text matching."""

    positive: str = "1"
    """The label of matching texts, for which F1 is computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassificationConfig(InferenceConfig):
    """Configuration of text classification."""

    several: bool = False
    """Multi-label: any number of classes may hold. Set by examples that are multi-label."""
    threshold: Annotated[float, Range(above=0, below=1)] = 0.5
    """Multi-label: the probability above which a class is predicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingConfig(Config):
    """Configuration of answer ranking.

    A training batch holds ``training.batch_size`` correct answers, each with its wrong ones.
    """

    loss: Annotated[str, Choice("pairwise", "listwise")] = "pairwise"
    """``pairwise``: margin loss between a correct and each wrong answer; ``listwise``: -log p of
    the correct answer among those sampled with it."""
    margin: Annotated[float, Range(above=0, max=1)] = 0.3
    """Margin of ``pairwise``, between scores from 0 to 1."""
    negatives: Annotated[int, AtLeast(0)] = 1
    """Wrong answers sampled for each correct one, anew in each epoch; 0: all."""
    questions: Annotated[str, Choice("answered", "single")] = "answered"
    """``answered``: all questions with a correct answer; ``single``: those with exactly one, and
    wrong ones beside it. Applies to training and evaluation."""
    dropout: Dropout = 0.1
    training: TaskTraining = field(default_factory=TaskTraining)


ORDERS = ("text", "roles")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationConfig(Config):
    """Configuration of relation extraction."""

    negative: tuple[str, ...] = ("false", "DDI-false", "0")
    """Labels that state no relation; F1 counts the others."""
    order: Annotated[str, Choice(*ORDERS)] = "text"
    """Order of the two states: of the mentions in the ``text``, as published, or in the example
    (``roles``)."""
    named: bool = False
    """Whether both mentions stay in the text after their markers, for entity-aware models;
    otherwise markers replace them, as published."""
    dropout: Dropout = 0.1
    training: TaskTraining = field(default_factory=TaskTraining)
