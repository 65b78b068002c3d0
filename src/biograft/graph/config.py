"""Configuration of graph embeddings and of personalised entity PageRank (PEPR)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

from biograft.config import (
    Above,
    AtLeast,
    Choice,
    Config,
    Doc,
    Option,
    Range,
    check_choice,
    check_fields,
)
from biograft.errors import ConfigError
from biograft.recipe import Recipe
from biograft.registry import Registry

PROJECTED = "transr"
"""The model with a projection for each relation."""
GRAPH_MODELS: Registry[Any] = Registry(
    "graph model",
    {
        "transe": ("biograft.graph.embedding.torch_steps:TransE", "a relation is a translation"),
        PROJECTED: ("biograft.graph.embedding.loops:Tables", "a translation in a space of its own"),
    },
    group="biograft.graph_models",
)
"""Models of a graph. One of others is a class with two static methods on tensors of torch:
``tails(heads, relations)``, where the tails are expected, and ``heads(tails, relations)``; it is
trained with any device, and ranked by ``norm``."""
COMPILED = ("transe", PROJECTED)
"""Models that have compiled loops for processors."""
NORMS = ("l1", "l2", "l2-squared")
BOUNDS = ("none", "unit", "ball")
LOSSES = ("margin", "self-adversarial")
SAMPLERS = ("uniform", "bernoulli")
OPTIMISERS = ("adam", "lazy-adam", "adagrad", "row-adagrad", "auto")
PROJECTIONS = ("xavier", "identity")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig(Config):
    """The model, its sizes, norm and constraints."""

    kind: Annotated[str, Doc("The model: transe, transr, or one of another package.")] = "transe"
    dim: Annotated[int, AtLeast(1)] = 100
    """Length of the vectors."""
    relation_dim: Annotated[int, AtLeast(0)] = 0
    """Dimension of relations, but for TransE; 0: that of the entities."""
    norm: Annotated[str, Choice(*NORMS)] = "l2"
    """Norm of the distance: ``l1`` or ``l2``."""
    clamp: bool = True
    """TransR: clip projected vectors to a norm of at most 1."""
    projection: Annotated[str, Choice(*PROJECTIONS)] = "identity"
    """TransR: initialisation of the projections."""
    entity_bound: Annotated[str, Choice(*BOUNDS)] = "unit"
    """Norm of entities after each step: 1 (``unit``), at most 1 (``ball``), or unbounded."""
    relation_bound: Annotated[str, Choice(*BOUNDS)] = "none"
    """Constraint on the vectors of relations."""
    inverse: bool = False
    """Learn inverse relations, and use them to predict heads."""

    def __post_init__(self) -> None:
        check_fields(self, "model.")
        check_choice("model.kind", self.kind, GRAPH_MODELS)
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
class SamplingConfig(Config):
    """Negative sampling: an end of a true triple is replaced."""

    kind: Annotated[str, Choice(*SAMPLERS)] = "uniform"
    """Corrupted end: both equally often, or by the Bernoulli rule of TransH (``bernoulli``)."""
    negatives: Annotated[int, AtLeast(1)] = 1
    """Number of negatives of each true triple."""
    filtered: bool = False
    """Never sample a training triple as a negative."""

    def __post_init__(self) -> None:
        check_fields(self, "sampling.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LossConfig(Config):
    """The loss, a mean over pairs or triples."""

    kind: Annotated[str, Choice(*LOSSES)] = "margin"
    """Name of the loss."""
    margin: Annotated[float, AtLeast(0)] = 1.0
    """Distance by which a negative should be worse than its true triple."""
    temperature: Annotated[float, AtLeast(0)] = 1.0
    """Self-adversarial: how strongly negatives of high score are weighted."""

    def __post_init__(self) -> None:
        check_fields(self, "loss.")


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimiserConfig(Config):
    """The optimiser; all but ``adam`` update only rows with gradients.

    ``auto`` is ``adam``, for more than 200,000 entities ``lazy-adam``.
    """

    kind: Annotated[str, Choice(*OPTIMISERS)] = "adagrad"
    """Name of the optimiser."""
    learning_rate: Annotated[float, Above(0)] = 0.1
    """Step size."""
    beta1: Annotated[float, Range(min=0, below=1)] = 0.9
    """Decay of the mean of gradients (Adam)."""
    beta2: Annotated[float, Range(min=0, below=1)] = 0.999
    """Decay of the mean of squared gradients (Adam)."""
    epsilon: Annotated[float, Above(0)] = 1e-8
    """Added to the denominator of an update, against division by zero."""

    def __post_init__(self) -> None:
        check_fields(self, "optimiser.")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingTrainingConfig(Config):
    """Epochs, batches, checkpoints and early stopping."""

    epochs: Annotated[int, AtLeast(1)] = 100
    batch: Annotated[int, AtLeast(1)] = 1024
    seed: Annotated[int, Range(min=0, below=2**63)] = 0
    save_every: Annotated[int, AtLeast(1)] = 10
    """Epochs between saved states; an interrupt saves nothing more."""
    evaluate_every: Annotated[int, AtLeast(0)] = 0
    """Epochs between evaluations on the valid split, which keep the best vectors; 0: never."""
    patience: Annotated[int, AtLeast(1)] = 5
    """Evaluations without a better MRR before training stops."""

    def __post_init__(self) -> None:
        check_fields(self, "training.")


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRecipe(Recipe):
    """The whole configuration of graph embeddings, besides the graph."""

    kind: ClassVar[str] = "graph"

    model: ModelConfig = field(default_factory=ModelConfig)
    """Model, sizes and constraints."""
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    """Number and kind of negatives."""
    loss: LossConfig = field(default_factory=LossConfig)
    """Kind and margin of the loss."""
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    """Optimiser and step size."""
    training: EmbeddingTrainingConfig = field(default_factory=EmbeddingTrainingConfig)
    """Epochs, batch and seed."""

    def with_seed(self, seed: int) -> GraphRecipe:
        """Return the same recipe with another seed.

        Args:
            seed: The random seed of the training.
        """
        return replace(self, training=replace(self.training, seed=seed))


EXPONENTS = {"columns": 0.0, "symmetric": 0.5, "rows": 1.0}
"""Normalisations of the adjacency A = D^-t W D^(t - 1), and their exponent t."""
MAX_ROUNDS = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class PeprConfig(Config):
    """Configuration of PEPR: how neighbours are scored, and how many are kept."""

    k: Annotated[int, Range(min=1, max=1000), Option("Neighbours per entity.", "-k", "K")] = 10
    damping: Annotated[
        float, Range(min=0.01, max=0.99), Option("Teleport probability.", metavar="A")
    ] = 0.15
    normalise: Annotated[str, Choice(*EXPONENTS), Option("Normalisation of the adjacency.")] = (
        "columns"
    )
    rounds: Annotated[
        int,
        Range(min=0, max=MAX_ROUNDS),
        Option(
            "Power iterations from the start vector, up to 6; 0: solve for the fixed point, which "
            "ignores the start.",
            metavar="N",
        ),
    ] = 0
    relations: Annotated[
        tuple[str, ...], Option("Edges of these relations only.", metavar="is-a,...")
    ] = ()
    refine: Annotated[bool, Option("Solve entities exactly whose ranking is uncertain.")] = False
    exact: Annotated[
        bool, Option("Solve every entity exactly; slow, the reference of benchmarks.")
    ] = False
    tolerance: Annotated[
        float, Range(min=1e-14, max=1e-4), Option("Maximum error of an exact score.", metavar="E")
    ] = 1e-9
    pilots: Annotated[
        int,
        Range(min=8, max=10_000),
        Doc(
            "Entities solved exactly to fit the correction: with over k neighbours, and with fewer."
        ),
    ] = 32
    threads: Annotated[
        int,
        Range(min=0, max=1024),
        Option("Threads; 0: one a core. The result does not depend on it.", metavar="N"),
    ] = 0
