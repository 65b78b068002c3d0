"""The configurations of all objectives, importable without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from biograft.config import (
    Above,
    AtLeast,
    Choice,
    Config,
    Range,
    Ratio,
    Weight,
    check_choice,
    check_fields,
)
from biograft.errors import ConfigError
from biograft.registry import Registry, load_object

REDUCTIONS = ("mean", "sequence_sum")
"""A loss is the mean over items, or the sum over the items of each sequence, as some papers print
it, and the mean over sequences."""
MENTION_REDUCTIONS = ("mse", *REDUCTIONS)
"""Reductions of squared distances: the mean over dimensions too, or as above."""
MASKING_MODES = ("token", "whole_word", "whole_entity")
NEIGHBOUR_FORMS = ("eq16", "eq19")
CORRECTIONS = ("log_q", "mu_log_q", "none")
SMOOTHING_FORMS = ("mean", "fairseq")
MINERS = ("all", "hard", "semihard", "none")
SIMILARITIES = ("cosine", "dot")

_ALIGNMENT = "biograft.training.objectives.synonym_alignment"
LOSSES: Registry[Any] = Registry(
    "alignment loss",
    {
        "multi_similarity": (f"{_ALIGNMENT}:MultiSimilarity", "soft maximum over each row's pairs"),
        "infonce": (f"{_ALIGNMENT}:InfoNCE", "each positive against the negatives of its row"),
        "triplet_margin": (
            f"{_ALIGNMENT}:TripletMargin",
            "a positive nearer than a negative by a margin",
        ),
        "circle": (f"{_ALIGNMENT}:Circle", "pairs weighted by how far they are from their target"),
    },
    group="biograft.alignment_losses",
)


class PartConfig(Config):
    """The configuration of an objective or a stream; it names the class that it configures."""

    __slots__ = ()

    stream_kind: ClassVar[str]
    """The kind of stream that the objective learns from, or that the stream is."""
    implementation: ClassVar[Any]
    """The class, or its ``module:class``, which is imported when it is needed."""

    @property
    def part(self) -> Any:
        """The class that is configured."""
        found = self.implementation
        return load_object(found) if isinstance(found, str) else found

    def build(self, setting: Any = None) -> Any:
        """Build the objective for a ``Setting``."""
        return self.part(self, setting)


class TextObjectiveConfig(PartConfig):
    """The configuration of an objective of running text."""

    __slots__ = ()

    stream_kind: ClassVar[str] = "annotated_text"


class PairObjectiveConfig(PartConfig):
    """The configuration of an objective of name pairs."""

    __slots__ = ()

    stream_kind: ClassVar[str] = "synonym_pairs"


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedTokensConfig(TextObjectiveConfig):
    """Settings of masked language modelling.

    ``mode`` is the unit of masking: a ``token``, a ``whole_word`` with all its tokens, or a
    ``whole_entity``, which is a word or a mention with all its words. Of the tokens of a text
    ``mask_ratio`` are masked, ``random_ratio`` replaced by random ones and ``kept_ratio`` left
    unchanged; all of these are predicted.
    """

    implementation: ClassVar[str] = "biograft.training.objectives.bert:MaskedTokens"

    mode: Annotated[str, Choice(*MASKING_MODES)] = "whole_entity"
    mask_ratio: Ratio = 0.12
    random_ratio: Ratio = 0.015
    kept_ratio: Ratio = 0.015
    weight: Weight = 1.0
    """Weight of the objective."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 < self.selected_ratio <= 1:
            raise ConfigError(
                "mask_ratio, random_ratio, kept_ratio: expected a sum above 0 and at most 1, "
                f"found {self.selected_ratio:g}"
            )

    @property
    def selected_ratio(self) -> float:
        """The ratio of tokens that are predicted."""
        return self.mask_ratio + self.random_ratio + self.kept_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityDetectionConfig(TextObjectiveConfig):
    """The weight of entity detection."""

    implementation: ClassVar[str] = "biograft.training.objectives.entities:EntityDetection"

    weight: Weight = 1.0
    """Weight of the objective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityLinkingConfig(TextObjectiveConfig):
    """The entities that compete with the right one.

    With ``n_sampled`` 0 it is the whole table, as published; for very large tables, that many
    entities sampled by frequency. At most ``max_scores`` scores of mentions and entities are held
    at once; more are computed in blocks.
    """

    implementation: ClassVar[str] = "biograft.training.objectives.entities:EntityLinking"

    n_sampled: Annotated[int, AtLeast(0)] = 0
    max_scores: Annotated[int, AtLeast(1)] = 1 << 25
    weight: Weight = 1.0
    """Weight of the objective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextSentenceConfig(TextObjectiveConfig):
    """The weight of next sentence prediction; the stream samples random next segments."""

    implementation: ClassVar[str] = "biograft.training.objectives.bert:NextSentence"

    weight: Weight = 1.0
    """Weight of the objective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceOrderConfig(TextObjectiveConfig):
    """The probability that the two segments of a sequence are swapped."""

    implementation: ClassVar[str] = "biograft.training.objectives.bert:SentenceOrder"

    swap_probability: Ratio = 0.5
    """Probability of a swap, from 0 to 1."""
    weight: Weight = 1.0
    """Weight of the objective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextEntityConsistencyConfig(TextObjectiveConfig):
    """The weight of context-entity consistency; the stream replaces entities.

    The loss is the mean over replaced entities, as published.
    """

    implementation: ClassVar[str] = "biograft.training.objectives.embert:ContextEntityConsistency"

    weight: Weight = 2.0
    """Weight of the objective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntitySegmentationConfig(TextObjectiveConfig):
    """The weight of entity segmentation; ``reduction`` is over the tokens of long mentions."""

    implementation: ClassVar[str] = "biograft.training.objectives.embert:EntitySegmentation"

    reduction: Annotated[str, Choice(*REDUCTIONS)] = "mean"
    weight: Weight = 2.0
    """Weight of the objective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BidirectionalEntityMaskingConfig(TextObjectiveConfig):
    """Settings of masking one half of long mentions.

    Of the long mentions of a sequence ``entity_ratio`` have one of their two parts masked, as long
    as at most ``max_token_ratio`` of the sequence's tokens are; masked_tokens then masks fewer
    others. Both directions share a head, or have one each (``shared_head = false``). Token
    positions within the part are embedded in ``position_dim`` dimensions; tokens beyond the first
    ``max_tokens`` are masked but not predicted. The losses of the two directions are added;
    ``reduction`` is over the tokens of each.
    """

    implementation: ClassVar[str] = "biograft.training.objectives.embert:BidirectionalEntityMasking"

    entity_ratio: Annotated[float, Range(above=0, max=1)] = 0.5
    max_token_ratio: Annotated[float, Range(above=0, max=1)] = 0.15
    shared_head: bool = True
    """Whether both directions share a head."""
    position_dim: Annotated[int, AtLeast(1)] = 200
    max_tokens: Annotated[int, AtLeast(1)] = 32
    reduction: Annotated[str, Choice(*REDUCTIONS)] = "mean"
    weight: Weight = 0.5
    """Weight of the objective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedNeighbourConfig(TextObjectiveConfig):
    """Settings of predicting neighbours against sampled entities.

    A score is ``mu`` times a cosine. With ``form`` ``eq16`` both sides are projected by the
    relation; ``eq19`` takes the cosine before the last product of the fast computation.
    ``correction`` is subtracted from each score for the sampling probability of its entity: the
    logarithm, ``mu`` times it, or nothing. ``reduction`` is over true neighbours.
    """

    implementation: ClassVar[str] = "biograft.training.objectives.smedbert:MaskedNeighbour"

    n_negatives: Annotated[int, AtLeast(1)] = 10
    """Number of sampled entities for each neighbour."""
    mu: Annotated[float, Above(0)] = 10.0
    form: Annotated[str, Choice(*NEIGHBOUR_FORMS)] = "eq16"
    correction: Annotated[str, Choice(*CORRECTIONS)] = "log_q"
    reduction: Annotated[str, Choice(*REDUCTIONS)] = "mean"
    weight: Weight = 2.0
    """Weight of the objective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedMentionConfig(TextObjectiveConfig):
    """The weight of masked mention modelling, a mean squared error.

    With ``reduction`` ``mse`` it is the mean over mentions and dimensions. ``mean`` and
    ``sequence_sum`` reduce squared distances, the sums over dimensions, which grow with the number
    of dimensions. The original tokens of a mention are known where ``masked_tokens`` masked them;
    others count as they are.
    """

    implementation: ClassVar[str] = "biograft.training.objectives.smedbert:MaskedMention"

    reduction: Annotated[str, Choice(*MENTION_REDUCTIONS)] = "mse"
    weight: Weight = 4.0
    """Weight of the objective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityPredictionConfig(TextObjectiveConfig):
    """For which mentions the entity is corrupted, and then predicted.

    Of the mentions of known entities ``withheld_ratio`` get no entity and ``replaced_ratio`` a
    random one of the table; the others get their own, which is not predicted.
    """

    implementation: ClassVar[str] = "biograft.training.objectives.entities:EntityPrediction"

    withheld_ratio: Ratio = 0.15
    replaced_ratio: Ratio = 0.05
    weight: Weight = 1.0
    """Weight of the objective."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 < self.withheld_ratio + self.replaced_ratio <= 1:
            raise ConfigError(
                "withheld_ratio, replaced_ratio: expected a sum above 0 and at most 1, found "
                f"{self.withheld_ratio + self.replaced_ratio:g}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class NameGeometryConfig(TextObjectiveConfig):
    """Weight of keeping the cosines of names, of at most ``max_names`` a batch."""

    implementation: ClassVar[str] = "biograft.training.objectives.name_geometry:NameGeometry"

    max_names: Annotated[int, AtLeast(2)] = 64
    weight: Weight = 20.0
    """Weight of the objective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameGenerationConfig(PartConfig):
    """Settings of learning the tokens of a name.

    ``label_smoothing`` is the part of the loss that goes to the whole vocabulary: in the form
    ``mean`` to all its tokens, in the form ``fairseq`` to all but the right one. ``r_drop``, where
    above 0, is the weight of the divergence between two passes with different dropout.
    ``unlikelihood``, where above 0, is the weight of a penalty on the other names of the trie; the
    authors' code has it with 0.1, off by default. Only fine-tuning has a trie.
    """

    stream_kind: ClassVar[str] = "name_templates"
    """Mentions in context are learned by fine-tuning."""
    implementation: ClassVar[str] = "biograft.training.objectives.name_generation:NameGeneration"

    label_smoothing: Annotated[float, Range(min=0, below=1)] = 0.1
    form: Annotated[str, Choice(*SMOOTHING_FORMS)] = "mean"
    """Form of the smoothing."""
    r_drop: Annotated[float, AtLeast(0)] = 0.0
    unlikelihood: Annotated[float, AtLeast(0)] = 0.0
    weight: Weight = 1.0
    """Weight of the objective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SynonymAlignmentConfig(PairObjectiveConfig):
    """Settings of the alignment loss: kind, parameters, triplets.

    ``miner`` says which triplets (anchor, positive, negative) count: ``all`` whose negative is
    at most ``margin`` farther than the positive, of these the ``hard`` ones (negative no farther)
    or the ``semihard`` ones (the rest); ``none`` keeps every pair of the batch.
    """

    implementation: ClassVar[str] = f"{_ALIGNMENT}:SynonymAlignment"

    loss: str = "multi_similarity"
    """Name of the loss."""
    parameters: Mapping[str, float] = field(default_factory=dict)
    """Parameters of the loss by name; empty: its defaults."""
    miner: Annotated[str, Choice(*MINERS)] = "all"
    margin: Annotated[float, AtLeast(0)] = 0.2
    weight: Weight = 1.0
    """Weight of the objective."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_choice("loss", self.loss, LOSSES)


@dataclass(frozen=True, slots=True, kw_only=True)
class SynonymMarginalConfig(Config):
    """Score of a name for a mention: (similarity + weight * lexical score) / temperature.

    ``similarity`` is the inner product of vectors of length 1 (``cosine``) or as they are
    (``dot``; BioSyn's, with a temperature of 1). The weight is learned: it starts at
    ``lexical_weight`` and has ``lexical_rate_factor`` times the learning rate of the other
    parameters, because a single number of that size would hardly move at an encoder's rate.
    """

    similarity: Annotated[str, Choice(*SIMILARITIES)] = "cosine"
    temperature: Annotated[float, Above(0)] = 0.05
    """Divisor of the score."""
    lexical_weight: Annotated[float, AtLeast(0)] = 0.5
    lexical_rate_factor: Annotated[float, Above(0)] = 500.0
