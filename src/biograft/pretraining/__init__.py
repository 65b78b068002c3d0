"""Pre-training: recipes with an encoder, a stream and objectives, and running them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.pretraining.alignment import (
        AlignmentTraining as AlignmentTraining,
        Embedder as Embedder,
    )
    from biograft.pretraining.language_modelling import (
        TextModel as TextModel,
        TextTraining as TextTraining,
    )
    from biograft.pretraining.neighbourhoods import read_neighbourhood as read_neighbourhood
    from biograft.pretraining.packed_text import PackedText as PackedText
    from biograft.pretraining.packing import Packer as Packer
    from biograft.pretraining.recipe import (
        EncoderConfig as EncoderConfig,
        KnowledgeConfig as KnowledgeConfig,
        PretrainingRecipe as PretrainingRecipe,
    )
    from biograft.pretraining.run import PretrainResult as PretrainResult, pretrain as pretrain
    from biograft.pretraining.stream_configs import (
        STREAMS as STREAMS,
        AnnotatedTextConfig as AnnotatedTextConfig,
        NameTemplatesConfig as NameTemplatesConfig,
        SynonymPairsConfig as SynonymPairsConfig,
    )
    from biograft.pretraining.substitution import (
        SubstitutionConfig as SubstitutionConfig,
        SynonymSubstitution as SynonymSubstitution,
        count_forms as count_forms,
    )
    from biograft.pretraining.synonym_pairs import (
        PairBatches as PairBatches,
        SynonymPairs as SynonymPairs,
    )
    from biograft.pretraining.templates import NameTemplates as NameTemplates
    from biograft.pretraining.text_batches import TextBatches as TextBatches
    from biograft.pretraining.text_builder import open_packed as open_packed
    from biograft.pretraining.tokenisation import (
        DocumentTokenizer as DocumentTokenizer,
        TokenisedDocument as TokenisedDocument,
    )

__getattr__, __dir__, __all__ = lazify(__name__)
