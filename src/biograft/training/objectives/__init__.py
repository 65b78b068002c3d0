"""Training objectives: losses of pre-training, each with its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from biograft.registry import Registry, lazify

if TYPE_CHECKING:
    from biograft.training.objectives.base import (
        LossTerm as LossTerm,
        Objective as Objective,
        PairHead as PairHead,
        TensorBatch as TensorBatch,
        TextStates as TextStates,
        labelled_cross_entropy as labelled_cross_entropy,
    )
    from biograft.training.objectives.bert import (
        MaskedTokens as MaskedTokens,
        NextSentence as NextSentence,
        SentenceOrder as SentenceOrder,
    )
    from biograft.training.objectives.configs import (
        LOSSES as LOSSES,
        BidirectionalEntityMaskingConfig as BidirectionalEntityMaskingConfig,
        ContextEntityConsistencyConfig as ContextEntityConsistencyConfig,
        EntityDetectionConfig as EntityDetectionConfig,
        EntityLinkingConfig as EntityLinkingConfig,
        EntityPredictionConfig as EntityPredictionConfig,
        EntitySegmentationConfig as EntitySegmentationConfig,
        MaskedMentionConfig as MaskedMentionConfig,
        MaskedNeighbourConfig as MaskedNeighbourConfig,
        MaskedTokensConfig as MaskedTokensConfig,
        NameGenerationConfig as NameGenerationConfig,
        NameGeometryConfig as NameGeometryConfig,
        NextSentenceConfig as NextSentenceConfig,
        PairObjectiveConfig as PairObjectiveConfig,
        SentenceOrderConfig as SentenceOrderConfig,
        SynonymAlignmentConfig as SynonymAlignmentConfig,
        SynonymMarginalConfig as SynonymMarginalConfig,
        TextObjectiveConfig as TextObjectiveConfig,
    )
    from biograft.training.objectives.distances import (
        cosine_distances as cosine_distances,
        euclidean_distances as euclidean_distances,
        into_ball as into_ball,
        poincare_distances as poincare_distances,
    )
    from biograft.training.objectives.embert import (
        BidirectionalEntityMasking as BidirectionalEntityMasking,
        ContextEntityConsistency as ContextEntityConsistency,
        EntitySegmentation as EntitySegmentation,
    )
    from biograft.training.objectives.entities import (
        EntityDetection as EntityDetection,
        EntityLinking as EntityLinking,
        EntityPrediction as EntityPrediction,
    )
    from biograft.training.objectives.examples import (
        CONSISTENT as CONSISTENT,
        FOLLOWS as FOLLOWS,
        HEAD_OFFSET as HEAD_OFFSET,
        IGNORED as IGNORED,
        SEGMENT_ENDS as SEGMENT_ENDS,
        SPECIAL as SPECIAL,
        VISIBLE_ENTITIES as VISIBLE_ENTITIES,
        WITHHELD_NEIGHBOURS as WITHHELD_NEIGHBOURS,
        EntityGraph as EntityGraph,
        EntityVisibility as EntityVisibility,
        Setting as Setting,
        TextBatch as TextBatch,
        TextExample as TextExample,
        collate as collate,
        set_visible_entities as set_visible_entities,
    )
    from biograft.training.objectives.model import (
        EncoderReader as EncoderReader,
        ObjectiveModel as ObjectiveModel,
    )
    from biograft.training.objectives.name_examples import (
        NameBatches as NameBatches,
        NameExample as NameExample,
    )
    from biograft.training.objectives.name_generation import (
        NameGeneration as NameGeneration,
        NameReader as NameReader,
        SequenceBatch as SequenceBatch,
        name_batches as name_batches,
    )
    from biograft.training.objectives.name_geometry import NameGeometry as NameGeometry
    from biograft.training.objectives.smedbert import (
        EdgeTable as EdgeTable,
        MaskedMention as MaskedMention,
        MaskedNeighbour as MaskedNeighbour,
        RelationProducts as RelationProducts,
        TypeSampler as TypeSampler,
    )
    from biograft.training.objectives.synonym_alignment import (
        PairObjective as PairObjective,
        SynonymAlignment as SynonymAlignment,
        TripletMarginMiner as TripletMarginMiner,
    )
    from biograft.training.objectives.synonym_marginal import (
        BankMarginal as BankMarginal,
        SynonymMarginal as SynonymMarginal,
        marginal_loss as marginal_loss,
    )


OBJECTIVES: Registry[Any] = Registry(
    "objective",
    {
        "synonym_alignment": (
            "configs:SynonymAlignmentConfig",
            "pull names of one concept together, push others apart (SapBERT)",
        ),
        "masked_tokens": (
            "configs:MaskedTokensConfig",
            "predict masked tokens, whole words or whole entities (BERT, KeBioLM)",
        ),
        "entity_detection": (
            "configs:EntityDetectionConfig",
            "tag each token as beginning, inside or outside of a mention (KeBioLM)",
        ),
        "entity_linking": (
            "configs:EntityLinkingConfig",
            "predict the entity of a mention (KeBioLM)",
        ),
        "next_sentence": (
            "configs:NextSentenceConfig",
            "classify whether the second segment follows the first (BERT)",
        ),
        "sentence_order": (
            "configs:SentenceOrderConfig",
            "classify whether two segments are swapped (ALBERT)",
        ),
        "context_entity_consistency": (
            "configs:ContextEntityConsistencyConfig",
            "classify whether a replaced entity is a synonym (EMBERT)",
        ),
        "entity_segmentation": (
            "configs:EntitySegmentationConfig",
            "predict where the sub-entities of a long entity end (EMBERT)",
        ),
        "bidirectional_entity_masking": (
            "configs:BidirectionalEntityMaskingConfig",
            "predict the masked head or adjective part of a long entity (EMBERT)",
        ),
        "name_generation": (
            "configs:NameGenerationConfig",
            "generate the name of the concept of a marked mention (GenBioEL)",
        ),
        "masked_neighbour": (
            "configs:MaskedNeighbourConfig",
            "predict the graph neighbours of a mention's entity (SMedBERT)",
        ),
        "masked_mention": (
            "configs:MaskedMentionConfig",
            "restore a masked mention from the knowledge of its entity (SMedBERT)",
        ),
        "entity_prediction": (
            "configs:EntityPredictionConfig",
            "predict entities that were withheld or replaced (ERNIE)",
        ),
        "name_geometry": (
            "configs:NameGeometryConfig",
            "keep the cosines of names as they were before training (distillation)",
        ),
    },
    group="biograft.objectives",
    home="biograft.training.objectives",
)
"""The configurations of objectives; ``build()`` makes the objective itself."""


__getattr__, __dir__, __all__ = lazify(__name__, "OBJECTIVES")
