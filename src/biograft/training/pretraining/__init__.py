"""Pre-training: recipes with an encoder, a stream and objectives, and running them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.training.pretraining.alignment import (
        PairBatch as PairBatch,
        SynonymPairs as SynonymPairs,
        TextPairs as TextPairs,
    )
    from biograft.training.pretraining.generation import NameTemplates as NameTemplates
    from biograft.training.pretraining.language_modelling import (
        TextReader as TextReader,
        TextSequences as TextSequences,
        read_neighbourhood as read_neighbourhood,
    )
    from biograft.training.pretraining.packed_text import (
        DocumentTokenizer as DocumentTokenizer,
        PackedText as PackedText,
        Packer as Packer,
        TokenisedDocument as TokenisedDocument,
        open_packed as open_packed,
    )
    from biograft.training.pretraining.recipe import (
        STREAMS as STREAMS,
        AnnotatedTextConfig as AnnotatedTextConfig,
        EncoderConfig as EncoderConfig,
        KnowledgeConfig as KnowledgeConfig,
        NameTemplatesConfig as NameTemplatesConfig,
        PairStreamConfig as PairStreamConfig,
        PretrainingRecipe as PretrainingRecipe,
        PretrainResult as PretrainResult,
        SynonymPairsConfig as SynonymPairsConfig,
        pretrain as pretrain,
    )
    from biograft.training.pretraining.substitution import (
        SubstitutionConfig as SubstitutionConfig,
        SynonymSubstitution as SynonymSubstitution,
        count_forms as count_forms,
    )

__getattr__, __dir__, __all__ = lazify(__name__)
