"""Objectives: what a model is trained for; each gives a loss and what there is to know of it."""

from __future__ import annotations

from typing import Any

from biograft.registry import Registry as Registry

__all__ = ["OBJECTIVES"]

OBJECTIVES: Registry[Any] = Registry(
    "objective",
    {
        "synonym_alignment": (
            "biograft.objectives.configs:SynonymAlignmentConfig",
            "names of one concept near each other, names of others far (SapBERT)",
        ),
        "masked_tokens": (
            "biograft.objectives.configs:MaskedTokensConfig",
            "tokens, whole words or whole entities are hidden and foretold (BERT, KeBioLM)",
        ),
        "entity_detection": (
            "biograft.objectives.configs:EntityDetectionConfig",
            "which tokens begin a mention, are in one, are in none (KeBioLM)",
        ),
        "entity_linking": (
            "biograft.objectives.configs:EntityLinkingConfig",
            "which entity of the table a mention means (KeBioLM)",
        ),
        "next_sentence": (
            "biograft.objectives.configs:NextSentenceConfig",
            "whether the second part of a sequence follows the first (BERT)",
        ),
        "sentence_order": (
            "biograft.objectives.configs:SentenceOrderConfig",
            "whether the parts of a sequence are swapped (ALBERT)",
        ),
        "context_entity_consistency": (
            "biograft.objectives.configs:ContextEntityConsistencyConfig",
            "whether an entity put in another's place is a synonym of it (EMBERT)",
        ),
        "entity_segmentation": (
            "biograft.objectives.configs:EntitySegmentationConfig",
            "where in a long entity its sub-entities end (EMBERT)",
        ),
        "bidirectional_entity_masking": (
            "biograft.objectives.configs:BidirectionalEntityMaskingConfig",
            "of a long entity the head from its adjective part, and the other way round (EMBERT)",
        ),
        "name_generation": (
            "biograft.objectives.configs:NameGenerationConfig",
            "from a text with a marked mention, the name of its concept (GenBioEL)",
        ),
        "masked_neighbour": (
            "biograft.objectives.configs:MaskedNeighbourConfig",
            "which entities are the neighbours of a mention's in the graph (SMedBERT)",
        ),
        "masked_mention": (
            "biograft.objectives.configs:MaskedMentionConfig",
            "what a hidden mention was, from what is known of its entity (SMedBERT)",
        ),
        "entity_prediction": (
            "biograft.objectives.configs:EntityPredictionConfig",
            "which entity a mention means whose own was withheld or exchanged (ERNIE)",
        ),
    },
)
"""The configuration of every objective; its ``build()`` gives the objective itself."""
