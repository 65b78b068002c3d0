"""Objectives: what a model is trained for; each gives a loss and what there is to know of it."""

from __future__ import annotations

from typing import Any

from biograft.registry import Registry

__all__ = ["OBJECTIVES"]

OBJECTIVES: Registry[Any] = Registry(
    "objective",
    {
        "synonym_alignment": (
            "biograft.objectives.synonym_alignment.config:SynonymAlignmentConfig",
            "names of one concept near each other, names of others far (SapBERT)",
        ),
        "masked_tokens": (
            "biograft.objectives.masked_tokens.config:MaskedTokensConfig",
            "tokens, whole words or whole entities are hidden and foretold (BERT, KeBioLM)",
        ),
        "entity_detection": (
            "biograft.objectives.entity_detection.config:EntityDetectionConfig",
            "which tokens begin a mention, are in one, are in none (KeBioLM)",
        ),
        "entity_linking": (
            "biograft.objectives.entity_linking.config:EntityLinkingConfig",
            "which entity of the table a mention means (KeBioLM)",
        ),
        "next_sentence": (
            "biograft.objectives.next_sentence.config:NextSentenceConfig",
            "whether the second part of a sequence follows the first (BERT)",
        ),
        "sentence_order": (
            "biograft.objectives.sentence_order.config:SentenceOrderConfig",
            "whether the parts of a sequence are swapped (ALBERT)",
        ),
        "context_entity_consistency": (
            "biograft.objectives.context_entity_consistency.config:ContextEntityConsistencyConfig",
            "whether an entity put in another's place is a synonym of it (EMBERT)",
        ),
        "entity_segmentation": (
            "biograft.objectives.entity_segmentation.config:EntitySegmentationConfig",
            "where in a long entity its sub-entities end (EMBERT)",
        ),
        "bidirectional_entity_masking": (
            "biograft.objectives.bidirectional_entity_masking.config"
            ":BidirectionalEntityMaskingConfig",
            "of a long entity the head from its adjective part, and the other way round (EMBERT)",
        ),
        "name_generation": (
            "biograft.objectives.name_generation.config:NameGenerationConfig",
            "from a text with a marked mention, the name of its concept (GenBioEL)",
        ),
        "masked_neighbour": (
            "biograft.objectives.masked_neighbour.config:MaskedNeighbourConfig",
            "which entities are the neighbours of a mention's in the graph (SMedBERT)",
        ),
        "masked_mention": (
            "biograft.objectives.masked_mention.config:MaskedMentionConfig",
            "what a hidden mention was, from what is known of its entity (SMedBERT)",
        ),
        "entity_prediction": (
            "biograft.objectives.entity_prediction.config:EntityPredictionConfig",
            "which entity a mention means whose own was withheld or exchanged (ERNIE)",
        ),
    },
)
"""The configuration of every objective; its ``build()`` gives the objective itself."""
