"""What a setting must be that is one of several words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from biograft.config import check_choice, check_weight
from biograft.errors import ConfigError, nearest
from biograft.registry import Registry, load_object

REDUCTIONS = ("mean", "printed")
MEAN_OR_SUM = ("mean", "sum")
"""The names of the same two ways in SMedBERT's objectives."""


def check_reduction(reduction: str, known: tuple[str, ...] = REDUCTIONS) -> None:
    """Refuse an unknown way."""
    check_choice("reduction", reduction, known)


MASKING_MODES = ("token", "whole_word", "whole_entity")


class ObjectiveConfig:
    """The configuration of an objective; it names the class that it configures."""

    __slots__ = ()

    reads: ClassVar[str]
    """The kind of stream it learns from."""
    implementation: ClassVar[str]
    """``module:class`` of the objective, imported when it is built."""

    def build(self, *setting: Any) -> Any:
        """Make the objective."""
        return load_object(self.implementation)(self, *setting)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedTokensConfig(ObjectiveConfig):
    """Which tokens are to be foretold, and what stands in their place.

    ``mode`` says what is chosen as one: a ``token``, a ``whole_word`` with all its tokens, or a
    ``whole_entity``, which is a word or a mention with all its words. Of the tokens of a text
    ``mask_share`` are masked, ``random_share`` exchanged for random ones, ``kept_share`` left as
    they are; all of these are foretold.
    """

    reads: ClassVar[str] = "annotated_text"
    """The kind of stream it learns from."""
    implementation: ClassVar[str] = "biograft.objectives.masked_tokens:MaskedTokens"

    mode: str = "whole_entity"
    mask_share: float = 0.12
    random_share: float = 0.015
    kept_share: float = 0.015
    weight: float = 1.0

    def __post_init__(self) -> None:
        check_choice("mode", self.mode, MASKING_MODES)
        for name in ("mask_share", "random_share", "kept_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(
                    f"{name}: expected a share from 0 to 1, found {getattr(self, name)}"
                )
        if not 0 < self.chosen_share <= 1:
            raise ConfigError(
                "mask_share, random_share, kept_share: expected a sum above 0 and at most 1, "
                f"found {self.chosen_share:g}"
            )
        check_weight(self.weight)

    @property
    def chosen_share(self) -> float:
        """Which share of the tokens is to be foretold."""
        return self.mask_share + self.random_share + self.kept_share


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityDetectionConfig(ObjectiveConfig):
    """How much detection counts."""

    reads: ClassVar[str] = "annotated_text"
    """The kind of stream it learns from."""
    implementation: ClassVar[str] = "biograft.objectives.entity_detection:EntityDetection"

    weight: float = 1.0

    def __post_init__(self) -> None:
        check_weight(self.weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityLinkingConfig(ObjectiveConfig):
    """Against which entities the right one is told.

    With ``n_sampled`` 0 it is the whole table, as published; for very large tables, so many
    entities drawn by how often they occur. ``max_scores`` bounds how many scores of mentions and
    entities are held at once; more are computed in parts.
    """

    reads: ClassVar[str] = "annotated_text"
    """The kind of stream it learns from."""
    implementation: ClassVar[str] = "biograft.objectives.entity_linking:EntityLinking"

    n_sampled: int = 0
    max_scores: int = 1 << 25
    weight: float = 1.0

    def __post_init__(self) -> None:
        for name, least in (("n_sampled", 0), ("max_scores", 1)):
            if getattr(self, name) < least:
                raise ConfigError(
                    f"{name}: expected a number of at least {least}, found {getattr(self, name)}"
                )
        check_weight(self.weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class NextSentenceConfig(ObjectiveConfig):
    """How much it counts; how many pairs are strangers is the stream's to say."""

    reads: ClassVar[str] = "annotated_text"
    """The kind of stream it learns from."""
    implementation: ClassVar[str] = "biograft.objectives.next_sentence:NextSentence"

    weight: float = 1.0

    def __post_init__(self) -> None:
        check_weight(self.weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceOrderConfig(ObjectiveConfig):
    """Which share of the sequences has its two parts swapped."""

    reads: ClassVar[str] = "annotated_text"
    """The kind of stream it learns from."""
    implementation: ClassVar[str] = "biograft.objectives.sentence_order:SentenceOrder"

    swapped_share: float = 0.5
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.swapped_share <= 1:
            raise ConfigError(
                f"swapped_share: expected a share from 0 to 1, found {self.swapped_share}"
            )
        check_weight(self.weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextEntityConsistencyConfig(ObjectiveConfig):
    """How much it counts; which entities are replaced by what is the stream's to say.

    The loss is the mean over replaced entities, as it is printed.
    """

    reads: ClassVar[str] = "annotated_text"
    """The kind of stream it learns from."""
    implementation: ClassVar[str] = (
        "biograft.objectives.context_entity_consistency:ContextEntityConsistency"
    )

    weight: float = 2.0

    def __post_init__(self) -> None:
        check_weight(self.weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntitySegmentationConfig(ObjectiveConfig):
    """How much it counts.

    With ``reduction`` ``mean`` the loss is the mean over the tokens of long entities, with
    ``printed`` the sum over those of a sequence.
    """

    reads: ClassVar[str] = "annotated_text"
    """The kind of stream it learns from."""
    implementation: ClassVar[str] = "biograft.objectives.entity_segmentation:EntitySegmentation"

    reduction: str = "mean"
    weight: float = 2.0

    def __post_init__(self) -> None:
        check_reduction(self.reduction)
        check_weight(self.weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class BidirectionalEntityMaskingConfig(ObjectiveConfig):
    """How many long entities have a part hidden, and how it is foretold.

    Of the long entities of a sequence ``share`` have one of their two parts hidden, as long as no
    more than ``most_share`` of the sequence's tokens are. masked_tokens then hides so many less.
    Both directions are foretold by one head, or by one each (``shared = false``), with places in
    the part of ``position_dim`` dimensions; tokens beyond the first ``longest`` are hidden but not
    asked for. The losses of the directions are added up; each is with ``reduction`` ``mean`` the
    mean over tokens, with ``printed`` the sum over those of a sequence.
    """

    reads: ClassVar[str] = "annotated_text"
    """The kind of stream it learns from."""
    implementation: ClassVar[str] = (
        "biograft.objectives.bidirectional_entity_masking:BidirectionalEntityMasking"
    )

    share: float = 0.5
    most_share: float = 0.15
    shared: bool = True
    position_dim: int = 200
    longest: int = 32
    reduction: str = "mean"
    weight: float = 0.5

    def __post_init__(self) -> None:
        for name in ("share", "most_share"):
            if not 0 < getattr(self, name) <= 1:
                raise ConfigError(
                    f"{name}: expected a share above 0 and at most 1, found {getattr(self, name)}"
                )
        for name in ("position_dim", "longest"):
            if getattr(self, name) < 1:
                raise ConfigError(
                    f"{name}: expected a number of at least 1, found {getattr(self, name)}"
                )
        check_reduction(self.reduction)
        check_weight(self.weight)


NEIGHBOUR_FORMS = ("eq16", "eq19")
CORRECTIONS = ("log_q", "mu_log_q", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedNeighbourConfig(ObjectiveConfig):
    """How neighbours are scored, and against how many other entities.

    A score is ``mu`` times a cosine. With ``form`` ``eq16`` both sides are seen through the
    relation; ``eq19`` takes the cosine of what the fast computation has before its last product.
    ``correction`` is what is taken off each score for how likely its entity is drawn: the
    logarithm, ``mu`` times it, or nothing. With ``reduction`` ``mean`` the loss is the mean over
    true neighbours, with ``sum`` the sum over those of a sequence.
    """

    reads: ClassVar[str] = "annotated_text"
    """The kind of stream it learns from."""
    implementation: ClassVar[str] = "biograft.objectives.masked_neighbour:MaskedNeighbour"

    n_negatives: int = 10
    mu: float = 10.0
    form: str = "eq16"
    correction: str = "log_q"
    reduction: str = "mean"
    weight: float = 2.0

    def __post_init__(self) -> None:
        if self.n_negatives < 1:
            raise ConfigError(
                f"n_negatives: expected a number of at least 1, found {self.n_negatives}"
            )
        if not 0 < self.mu < float("inf"):
            raise ConfigError(f"mu: expected a number above 0, found {self.mu}")
        check_choice("form", self.form, NEIGHBOUR_FORMS)
        check_choice("correction", self.correction, CORRECTIONS)
        check_reduction(self.reduction, MEAN_OR_SUM)
        check_weight(self.weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedMentionConfig(ObjectiveConfig):
    """How much it counts.

    With ``reduction`` ``mean`` the loss is the mean over mentions, with ``sum`` the sum over those
    of a sequence. What stood in a mention is known of the tokens that ``masked_tokens`` hid; others
    count as they are.
    """

    reads: ClassVar[str] = "annotated_text"
    """The kind of stream it learns from."""
    implementation: ClassVar[str] = "biograft.objectives.masked_mention:MaskedMention"

    reduction: str = "mean"
    weight: float = 4.0

    def __post_init__(self) -> None:
        check_reduction(self.reduction, MEAN_OR_SUM)
        check_weight(self.weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityPredictionConfig(ObjectiveConfig):
    """Which mentions are told something else than their own entity, and foretell it.

    Of the mentions of known entities ``withheld_share`` are told none and ``replaced_share`` a
    random one of the table; the others are told their own, and are not asked for it.
    """

    reads: ClassVar[str] = "annotated_text"
    """The kind of stream it learns from."""
    implementation: ClassVar[str] = "biograft.objectives.entity_prediction:EntityPrediction"

    withheld_share: float = 0.15
    replaced_share: float = 0.05
    weight: float = 1.0

    def __post_init__(self) -> None:
        for name in ("withheld_share", "replaced_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(
                    f"{name}: expected a share from 0 to 1, found {getattr(self, name)}"
                )
        if not 0 < self.withheld_share + self.replaced_share <= 1:
            raise ConfigError(
                "withheld_share, replaced_share: expected a sum above 0 and at most 1, found "
                f"{self.withheld_share + self.replaced_share:g}"
            )
        check_weight(self.weight)


SMOOTHING_FORMS = ("mean", "fairseq")


@dataclass(frozen=True, slots=True, kw_only=True)
class NameGenerationConfig(ObjectiveConfig):
    """How the tokens of a name are learned.

    ``label_smoothing`` is the share of the loss that goes to the whole vocabulary: in the form
    ``mean`` to all its tokens, in the form ``fairseq`` to all but the right one. ``r_drop``, where
    above 0, is the weight of how far two passes with different dropout differ.
    """

    reads: ClassVar[str] = "name_templates"
    """The kind of stream it learns from; mentions in context are learned by fine-tuning."""
    implementation: ClassVar[str] = "biograft.objectives.name_generation:NameGeneration"

    label_smoothing: float = 0.1
    form: str = "mean"
    r_drop: float = 0.0
    weight: float = 1.0

    def __post_init__(self) -> None:
        check_choice("form", self.form, SMOOTHING_FORMS)
        if not 0 <= self.label_smoothing < 1:
            raise ConfigError(
                f"label_smoothing: expected a share from 0 to below 1, found {self.label_smoothing}"
            )
        if not 0 <= self.r_drop < float("inf"):
            raise ConfigError(f"r_drop: expected a number of at least 0, found {self.r_drop}")
        check_weight(self.weight)


MINERS = ("all", "hard", "semihard", "none")

_HOME = "biograft.objectives.synonym_alignment"
LOSSES: Registry[Any] = Registry(
    "alignment loss",
    {
        "multi_similarity": (f"{_HOME}:MultiSimilarity", "soft maximum over each row's pairs"),
        "infonce": (f"{_HOME}:InfoNCE", "each positive against the negatives of its row"),
        "triplet_margin": (f"{_HOME}:TripletMargin", "a positive nearer than a negative by far"),
        "circle": (f"{_HOME}:Circle", "pairs weighted by how far they are from where they belong"),
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SynonymAlignmentConfig(ObjectiveConfig):
    """Which loss, with which parameters, on which triplets.

    ``miner`` says which triplets (anchor, positive, negative) count: ``all`` whose negative is
    at most ``margin`` farther than the positive, of these the ``hard`` ones (negative no farther)
    or the ``semihard`` ones (the rest); ``none`` keeps every pair of the batch.
    """

    reads: ClassVar[str] = "synonym_pairs"
    """The kind of stream it learns from."""
    implementation: ClassVar[str] = "biograft.objectives.synonym_alignment:SynonymAlignment"

    loss: str = "multi_similarity"
    parameters: Mapping[str, float] = field(default_factory=dict)
    miner: str = "all"
    margin: float = 0.2
    weight: float = 1.0

    def __post_init__(self) -> None:
        for name, value, known in (("loss", self.loss, LOSSES), ("miner", self.miner, MINERS)):
            if value not in known:
                raise ConfigError(f"{name}: expected one of {', '.join(known)}, "
                                  f"found {value!r}; {nearest(value, known)}")  # fmt: skip
        for name in ("margin", "weight"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ConfigError(
                    f"{name}: expected a number of at least 0, found {getattr(self, name)}"
                )


SIMILARITIES = ("cosine", "dot")


@dataclass(frozen=True, slots=True, kw_only=True)
class SynonymMarginalConfig:
    """How a name is scored for a mention: (similarity + weight * lexical score) / temperature.

    ``similarity`` is the inner product of vectors of length 1 (``cosine``) or as they are
    (``dot``; BioSyn's, with a temperature of 1). The weight is learned: it starts at
    ``lexical_weight`` and moves ``pace`` times as fast as the other weights, because one number
    among numbers of that size would hardly move at an encoder's learning rate.
    """

    similarity: str = "cosine"
    temperature: float = 0.05
    lexical_weight: float = 0.5
    pace: float = 500.0

    def __post_init__(self) -> None:
        if self.similarity not in SIMILARITIES:
            raise ConfigError(
                f"similarity: expected one of {', '.join(SIMILARITIES)}, found {self.similarity!r}"
            )
        for name in ("temperature", "pace"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ConfigError(f"{name}: expected a number above 0, found {getattr(self, name)}")
        if not 0 <= self.lexical_weight < float("inf"):
            raise ConfigError(
                f"lexical_weight: expected a number of at least 0, found {self.lexical_weight}"
            )
