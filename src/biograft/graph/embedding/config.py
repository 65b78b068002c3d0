"""What embeddings of a graph are trained with: a recipe of five tables, each checked by name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from biograft.config import find_recipe, from_mapping, load_toml, set_value
from biograft.errors import ConfigError, nearest

MODELS = ("transe", "transr")
NORMS = ("l1", "l2", "l2-squared")
BOUNDS = ("none", "unit", "ball")
LOSSES = ("margin", "self-adversarial")
SAMPLERS = ("uniform", "bernoulli")
OPTIMISERS = ("adam", "lazy-adam", "adagrad", "row-adagrad")
INITIALS = ("xavier", "identity")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """How a triple is scored: minus the distance from head plus relation to tail."""

    kind: str = "transe"
    dim: int = 100
    relation_dim: int = 0
    """Of TransR's relations; 0: as the entities."""
    norm: str = "l2"
    clamp: bool = True
    """TransR: shorten what a projection gives to a length of at most 1."""
    projection: str = "identity"
    """TransR: what the projections begin as."""
    entity_bound: str = "unit"
    """After each step: entities of length 1 (``unit``), of at most 1 (``ball``), or free."""
    relation_bound: str = "none"
    inverse: bool = False
    """Learn a second relation for the way back, and use it to predict heads."""

    def __post_init__(self) -> None:
        _one_of("model.kind", self.kind, MODELS)
        _one_of("model.norm", self.norm, NORMS)
        _one_of("model.entity_bound", self.entity_bound, BOUNDS)
        _one_of("model.relation_bound", self.relation_bound, BOUNDS)
        _one_of("model.projection", self.projection, INITIALS)
        _at_least("model.dim", self.dim, 1)
        _at_least("model.relation_dim", self.relation_dim, 0)
        if self.kind == "transe" and self.relation_dim not in (0, self.dim):
            raise ConfigError(
                f"model.relation_dim: TransE needs that of the entities ({self.dim}), "
                f"found {self.relation_dim}"
            )

    @property
    def width(self) -> int:
        """The size of a relation's vector."""
        return self.relation_dim or self.dim


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingConfig:
    """How false triples are made: an end of a true one is replaced."""

    kind: str = "uniform"
    """Which end: either alike, or (``bernoulli``) the one that is less often false by chance."""
    negatives: int = 1
    filtered: bool = False
    """Never take a triple of the training part for a false one."""

    def __post_init__(self) -> None:
        _one_of("sampling.kind", self.kind, SAMPLERS)
        _at_least("sampling.negatives", self.negatives, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LossConfig:
    """What is made small, the mean over pairs or triples."""

    kind: str = "margin"
    margin: float = 1.0
    temperature: float = 1.0
    """Self-adversarial: how much more false triples of high score count."""

    def __post_init__(self) -> None:
        _one_of("loss.kind", self.kind, LOSSES)
        _at_least("loss.margin", self.margin, 0)
        _at_least("loss.temperature", self.temperature, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimiserConfig:
    """How vectors move; all but ``adam`` touch only what a batch speaks of."""

    kind: str = "adagrad"
    learning_rate: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        _one_of("optimiser.kind", self.kind, OPTIMISERS)
        _above("optimiser.learning_rate", self.learning_rate)
        _above("optimiser.epsilon", self.epsilon)
        for name, value in (("beta1", self.beta1), ("beta2", self.beta2)):
            if not 0 <= value < 1:
                raise ConfigError(f"optimiser.{name}: expected 0 <= {name} < 1, found {value}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """How long, in what steps, and when to look at the valid part."""

    epochs: int = 100
    batch: int = 1024
    seed: int = 0
    save_every: int = 10
    """Epochs after which the state is saved; an interrupt saves nothing more."""
    evaluate_every: int = 0
    """Epochs after which the valid part is ranked and the best vectors are kept; 0: never."""
    patience: int = 5
    """Looks at the valid part without a better MRR before training stops."""

    def __post_init__(self) -> None:
        _at_least("training.epochs", self.epochs, 1)
        _at_least("training.batch", self.batch, 1)
        _at_least("training.seed", self.seed, 0)
        if self.seed >= 2**63:
            raise ConfigError(f"training.seed: expected less than 2**63, found {self.seed}")
        _at_least("training.save_every", self.save_every, 1)
        _at_least("training.evaluate_every", self.evaluate_every, 0)
        _at_least("training.patience", self.patience, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingRecipe:
    """All that decides what comes out, besides the graph."""

    about: str = ""
    model: ModelConfig = field(default_factory=ModelConfig)
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    @classmethod
    def load(cls, name_or_path: str | Path, overrides: Sequence[str] = ()) -> EmbeddingRecipe:
        """Load a shipped recipe by name, or a file; overrides are ``table.key=value`` texts."""
        values = load_toml(find_recipe(name_or_path, shipped_embeddings()))
        for override in overrides:
            set_value(values, override)
        return from_mapping(cls, values)

    def with_seed(self, seed: int) -> EmbeddingRecipe:
        """Give the same with another seed."""
        return replace(self, training=replace(self.training, seed=seed))

    def to_json(self) -> dict[str, Any]:
        """Give the whole recipe as plain values."""
        return asdict(self)


def shipped_embeddings() -> dict[str, Path]:
    """Find the recipes that come with biograft, by name."""
    return {path.stem: path for path in sorted(Path(__file__).parent.glob("*.toml"))}


def _one_of(name: str, value: str, known: Collection[str]) -> None:
    if value not in known:
        raise ConfigError(f"{name}: nothing is called {value!r}; {nearest(value, known)}")


def _at_least(name: str, value: float, least: int) -> None:
    if not least <= value < float("inf"):
        raise ConfigError(f"{name}: expected at least {least}, found {value}")


def _above(name: str, value: float) -> None:
    if not 0 < value < float("inf"):
        raise ConfigError(f"{name}: expected a number above 0, found {value}")
