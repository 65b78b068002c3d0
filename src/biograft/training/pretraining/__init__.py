"""Pre-training: recipes with an encoder, a stream and objectives, and running them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.training.pretraining.alignment import (
        AlignmentTraining as AlignmentTraining,
        Embedder as Embedder,
    )
    from biograft.training.pretraining.language_modelling import (
        TextModel as TextModel,
        TextTraining as TextTraining,
    )
    from biograft.training.pretraining.neighbourhoods import (
        read_neighbourhood as read_neighbourhood,
    )
    from biograft.training.pretraining.packed_text import (
        PackedText as PackedText,
        open_packed as open_packed,
    )
    from biograft.training.pretraining.packing import Packer as Packer
    from biograft.training.pretraining.recipe import (
        EncoderConfig as EncoderConfig,
        KnowledgeConfig as KnowledgeConfig,
        PretrainingRecipe as PretrainingRecipe,
    )
    from biograft.training.pretraining.run import (
        PretrainResult as PretrainResult,
        pretrain as pretrain,
    )
    from biograft.training.pretraining.stream_configs import (
        STREAMS as STREAMS,
        AnnotatedTextConfig as AnnotatedTextConfig,
        NameTemplatesConfig as NameTemplatesConfig,
        SynonymPairsConfig as SynonymPairsConfig,
    )
    from biograft.training.pretraining.substitution import (
        SubstitutionConfig as SubstitutionConfig,
        SynonymSubstitution as SynonymSubstitution,
        count_forms as count_forms,
    )
    from biograft.training.pretraining.synonym_pairs import (
        PairBatches as PairBatches,
        SynonymPairs as SynonymPairs,
    )
    from biograft.training.pretraining.templates import NameTemplates as NameTemplates
    from biograft.training.pretraining.text_batches import TextBatches as TextBatches
    from biograft.training.pretraining.tokenisation import (
        DocumentTokenizer as DocumentTokenizer,
        TokenisedDocument as TokenisedDocument,
    )

__getattr__, __dir__, __all__ = lazify(__name__)
