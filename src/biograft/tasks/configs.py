"""What all kinds of tasks share: how a model is trained, which seeds and rates are tried."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from biograft.errors import ConfigError
from biograft.training.config import TrainingConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTraining(TrainingConfig):
    """A training run that is measured on dev after each epoch; the best epoch's weights stay.

    ``patience`` ends it when so many epochs in a row were no better than the best one (0: never);
    nothing is better than a score of 1.
    """

    epochs: int = 60
    batch_size: int = 16
    learning_rate: float = 3e-5
    schedule: str = "linear"
    warmup: float = 0.1
    clip: float = 1.0
    save_every: int = 0
    patience: int = 0

    def __post_init__(self) -> None:
        TrainingConfig.__post_init__(self)
        self._check("patience", self.patience >= 0, "a number of at least 0")
        for name in ("steps", "eval_every", "max_minutes"):
            why = "0 (a task counts epochs, and is resumed by seeds)"
            self._check(name, getattr(self, name) == 0, why)

    def for_run(self, seed: int) -> TrainingConfig:
        """Give the loop what it needs to know of a run."""
        shared = {field.name: getattr(self, field.name) for field in fields(TrainingConfig)}
        return TrainingConfig(**{**shared, "seed": seed})


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConfig:
    """Which learning rates are tried, and with which seeds the chosen one is run."""

    learning_rates: tuple[float, ...] = ()
    """Those to choose from by the score on dev; none: ``config.training.learning_rate``."""
    choosing_seeds: int = 1
    """With how many of the seeds the rates are compared."""
    seeds: tuple[int, ...] = (1,)

    def __post_init__(self) -> None:
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or min(self.seeds) < 0:
            raise ConfigError(f"seeds: expected different numbers of at least 0: {self.seeds}")
        if not 1 <= self.choosing_seeds <= len(self.seeds):
            raise ConfigError(
                f"choosing_seeds: expected 1 to {len(self.seeds)} (the number of seeds), "
                f"found {self.choosing_seeds}"
            )
        if any(not 0 < rate < float("inf") for rate in self.learning_rates):
            raise ConfigError(f"learning_rates: expected numbers above 0: {self.learning_rates}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """Where the examples are; paths count from the working directory."""

    train: tuple[str, ...] = ()
    dev: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    format: str = ""
    """Name of the format; empty: recognised by content."""
    has_parts: bool = False
    """For DDI: each file is the whole corpus, of which only the part asked for is taken."""
    dev_list: str = ""
    """For DDI: the list of pairs whose documents leave train for dev; implies ``has_parts``."""
    grouped: bool = False
    """For ChemProt: BLURB's groups in place of single relations."""


NER_CHOICES = {
    "head": ("softmax", "crf", "spans"),
    "scheme": ("bio", "bioes"),
    "types": ("ignore", "keep"),
    "read": ("passages", "sentences", "documents"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NerConfig:
    """How entities are marked, what is read at once, and how the model is trained."""

    head: str = "softmax"
    """``softmax``: a tag for each word by itself; ``crf``: the best sequence of tags; ``spans``:
    every span by itself, so that entities may lie inside others."""
    scheme: str = "bio"
    """Tags of softmax and crf: ``bio``, or ``bioes`` with marks for last and single words."""
    types: str = "ignore"
    """``ignore``: all entities are of one type, as in BLURB; ``keep``: the types of the files."""
    read: str = "passages"
    """What is read by itself: the ``passages`` of the files (sentences of CoNLL, title and
    abstract), ``sentences`` of these, or whole ``documents``."""
    overlap: int = 64
    """Tokens that windows share where a text is longer than the encoder reads."""
    max_span: int = 64
    """Of ``spans``, the most words of an entity."""
    dropout: float = 0.1
    training: TaskTraining = field(default_factory=TaskTraining)

    def __post_init__(self) -> None:
        for name, known in NER_CHOICES.items():
            if getattr(self, name) not in known:
                raise ConfigError(
                    f"{name}: expected one of {', '.join(known)}, found {getattr(self, name)!r}"
                )
        if self.overlap < 0:
            raise ConfigError(f"overlap: expected at least 0, found {self.overlap}")
        if self.max_span < 1:
            raise ConfigError(f"max_span: expected at least 1, found {self.max_span}")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout: expected a share below 1, found {self.dropout}")


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


RANKING_CHOICES = {"loss": ("pairwise", "listwise"), "questions": ("answered", "single")}


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingConfig:
    """What is learned of right and wrong answers, and how the model is trained.

    A training batch holds ``training.batch_size`` right answers, each with its wrong ones.
    """

    loss: str = "pairwise"
    """``pairwise``: a right answer's score is to be higher by a margin than each wrong one's;
    ``listwise``: -log p of the right answer among those drawn with it."""
    margin: float = 0.3
    """Of pairwise, between scores from 0 to 1."""
    negatives: int = 1
    """Wrong answers drawn for each right one, others in each epoch; 0: all there are."""
    questions: str = "answered"
    """``answered``: all questions with a right answer; ``single``: those with exactly one, and
    wrong ones beside it. Both for what is learned from and what is measured."""
    dropout: float = 0.1
    training: TaskTraining = field(default_factory=TaskTraining)

    def __post_init__(self) -> None:
        for name, known in RANKING_CHOICES.items():
            if getattr(self, name) not in known:
                raise ConfigError(
                    f"{name}: expected one of {', '.join(known)}, found {getattr(self, name)!r}"
                )
        if not 0 < self.margin <= 1:
            raise ConfigError(f"margin: expected a number above 0, at most 1, found {self.margin}")
        if self.negatives < 0:
            raise ConfigError(f"negatives: expected at least 0, found {self.negatives}")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout: expected a share below 1, found {self.dropout}")


ORDERS = ("text", "roles")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationConfig:
    """Which labels count, how mentions are shown and read, and how the model is trained."""

    negative: tuple[str, ...] = ("false", "DDI-false", "0")
    """Labels that say that there is no relation; F1 counts the others."""
    order: str = "text"
    """Whose state comes first: of the mention that stands first in the ``text``, as published,
    or of the example's first one (``roles``)."""
    named: bool = False
    """Whether the names of both mentions stay in the text, behind their indicators, for models that
    know what they name; else indicators take their place, as published."""
    dropout: float = 0.1
    training: TaskTraining = field(default_factory=TaskTraining)

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise ConfigError(f"order: expected one of {', '.join(ORDERS)}, found {self.order!r}")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout: expected a share below 1, found {self.dropout}")
