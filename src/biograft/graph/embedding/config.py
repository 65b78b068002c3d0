"""Configuration of graph embeddings: model, sampling, loss, optimiser and training."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import ClassVar

from biograft.errors import ConfigError, nearest
from biograft.recipes.recipe import Recipe

MODELS = ("transe", "transr")
NORMS = ("l1", "l2", "l2-squared")
BOUNDS = ("none", "unit", "ball")
LOSSES = ("margin", "self-adversarial")
SAMPLERS = ("uniform", "bernoulli")
OPTIMISERS = ("adam", "lazy-adam", "adagrad", "row-adagrad", "auto")
PROJECTIONS = ("xavier", "identity")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """The model: TransE or TransR, its sizes, norm and constraints."""

    kind: str = "transe"
    dim: int = 100
    relation_dim: int = 0
    """Dimension of TransR's relations; 0: that of the entities."""
    norm: str = "l2"
    clamp: bool = True
    """TransR: clip projected vectors to a norm of at most 1."""
    projection: str = "identity"
    """TransR: initialisation of the projections."""
    entity_bound: str = "unit"
    """Norm of entities after each step: 1 (``unit``), at most 1 (``ball``), or unbounded."""
    relation_bound: str = "none"
    inverse: bool = False
    """Learn inverse relations, and use them to predict heads."""

    def __post_init__(self) -> None:
        _check_choice("model.kind", self.kind, MODELS)
        _check_choice("model.norm", self.norm, NORMS)
        _check_choice("model.entity_bound", self.entity_bound, BOUNDS)
        _check_choice("model.relation_bound", self.relation_bound, BOUNDS)
        _check_choice("model.projection", self.projection, PROJECTIONS)
        _check_minimum("model.dim", self.dim, 1)
        _check_minimum("model.relation_dim", self.relation_dim, 0)
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
    """Negative sampling: an end of a true triple is replaced."""

    kind: str = "uniform"
    """Which end: both equally often, or by the Bernoulli rule of TransH (``bernoulli``)."""
    negatives: int = 1
    filtered: bool = False
    """Never sample a training triple as a negative."""

    def __post_init__(self) -> None:
        _check_choice("sampling.kind", self.kind, SAMPLERS)
        _check_minimum("sampling.negatives", self.negatives, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LossConfig:
    """The loss, a mean over pairs or triples."""

    kind: str = "margin"
    margin: float = 1.0
    temperature: float = 1.0
    """Self-adversarial: how strongly negatives of high score are weighted."""

    def __post_init__(self) -> None:
        _check_choice("loss.kind", self.kind, LOSSES)
        _check_minimum("loss.margin", self.margin, 0)
        _check_minimum("loss.temperature", self.temperature, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimiserConfig:
    """The optimiser; all but ``adam`` update only rows with gradients.

    ``auto`` is ``adam``, for more than 200,000 entities ``lazy-adam``.
    """

    kind: str = "adagrad"
    learning_rate: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        _check_choice("optimiser.kind", self.kind, OPTIMISERS)
        _check_positive("optimiser.learning_rate", self.learning_rate)
        _check_positive("optimiser.epsilon", self.epsilon)
        for name, value in (("beta1", self.beta1), ("beta2", self.beta2)):
            if not 0 <= value < 1:
                raise ConfigError(f"optimiser.{name}: expected 0 <= {name} < 1, found {value}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingTrainingConfig:
    """Epochs, batches, checkpoints and early stopping."""

    epochs: int = 100
    batch: int = 1024
    seed: int = 0
    save_every: int = 10
    """Epochs between saved states; an interrupt saves nothing more."""
    evaluate_every: int = 0
    """Epochs between evaluations on the valid split, which keep the best vectors; 0: never."""
    patience: int = 5
    """Evaluations without a better MRR before training stops."""

    def __post_init__(self) -> None:
        _check_minimum("training.epochs", self.epochs, 1)
        _check_minimum("training.batch", self.batch, 1)
        _check_minimum("training.seed", self.seed, 0)
        if self.seed >= 2**63:
            raise ConfigError(f"training.seed: expected less than 2**63, found {self.seed}")
        _check_minimum("training.save_every", self.save_every, 1)
        _check_minimum("training.evaluate_every", self.evaluate_every, 0)
        _check_minimum("training.patience", self.patience, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRecipe(Recipe):
    """The whole configuration of graph embeddings, besides the graph."""

    kind: ClassVar[str] = "graph"

    model: ModelConfig = field(default_factory=ModelConfig)
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    training: EmbeddingTrainingConfig = field(default_factory=EmbeddingTrainingConfig)

    def with_seed(self, seed: int) -> GraphRecipe:
        """Return the same recipe with another seed."""
        return replace(self, training=replace(self.training, seed=seed))


def _check_choice(name: str, value: str, known: Collection[str]) -> None:
    if value not in known:
        raise ConfigError(f"{name}: nothing is called {value!r}; {nearest(value, known)}")


def _check_minimum(name: str, value: float, minimum: int) -> None:
    if not minimum <= value < float("inf"):
        raise ConfigError(f"{name}: expected at least {minimum}, found {value}")


def _check_positive(name: str, value: float) -> None:
    if not 0 < value < float("inf"):
        raise ConfigError(f"{name}: expected a number above 0, found {value}")
