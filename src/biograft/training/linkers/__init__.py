"""Training of linkers: encoders, re-rankers, generators, rankers and static encoders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.training.batches import EpochOrder as EpochOrder, Shard as Shard
    from biograft.training.linkers.encoder import (
        CandidateFinder as CandidateFinder,
        NameTable as NameTable,
        average_encoders as average_encoders,
        finetune_encoder as finetune_encoder,
        make_examples as make_examples,
    )
    from biograft.training.linkers.generative import (
        GenerationExamples as GenerationExamples,
        Mentions as Mentions,
        collect_mentions as collect_mentions,
        train_generative as train_generative,
    )
    from biograft.training.linkers.preferences import (
        NameScores as NameScores,
        collect_pairs as collect_pairs,
    )
    from biograft.training.linkers.recipes import (
        LINKERS as LINKERS,
        FinetuneConfig as FinetuneConfig,
        LinkerKind as LinkerKind,
        LinkerRecipe as LinkerRecipe,
        LinkerTrainingData as LinkerTrainingData,
        Outcome as Outcome,
        finetune as finetune,
        label_mentions as label_mentions,
    )
    from biograft.training.linkers.rerank import (
        RerankData as RerankData,
        collect_examples as collect_examples,
        train_reranker as train_reranker,
    )
    from biograft.training.linkers.static import (
        DistilledEncoder as DistilledEncoder,
        distil_encoder as distil_encoder,
    )
    from biograft.training.linkers.supervised import (
        grow_store as grow_store,
        train_network as train_network,
    )

__getattr__, __dir__, __all__ = lazify(__name__)
