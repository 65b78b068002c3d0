"""Similarity probe (SMedBERT): whether synonyms are more similar than hard negatives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft_lab.probing.config import (
        SimilarityConfig as SimilarityConfig,
        WordVectorConfig as WordVectorConfig,
    )
    from biograft_lab.probing.similarity.encoder import EncoderSimilarity as EncoderSimilarity
    from biograft_lab.probing.similarity.frequencies import (
        count_names as count_names,
        with_frequencies as with_frequencies,
    )
    from biograft_lab.probing.similarity.lexical import lexical_similarity as lexical_similarity
    from biograft_lab.probing.similarity.queries import (
        SimilarityQueries as SimilarityQueries,
        SimilarityQuery as SimilarityQuery,
        build_queries as build_queries,
    )
    from biograft_lab.probing.similarity.report import (
        QueryNames as QueryNames,
        SimilarityReport as SimilarityReport,
        collect_names as collect_names,
        judge as judge,
    )
    from biograft_lab.probing.similarity.word_vectors import (
        WordVectors as WordVectors,
        read_training_text as read_training_text,
        train_baseline as train_baseline,
        train_glove as train_glove,
        train_sgns as train_sgns,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
