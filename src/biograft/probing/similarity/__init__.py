"""Whether names of the same thing lie nearer to one another than names that look like them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.probing.similarity.config import SimilarityConfig as SimilarityConfig
    from biograft.probing.similarity.encoding import NameEncoder as NameEncoder
    from biograft.probing.similarity.frequencies import (
        count_names as count_names,
        with_frequencies as with_frequencies,
    )
    from biograft.probing.similarity.glove import train_glove as train_glove
    from biograft.probing.similarity.judging import (
        AskedNames as AskedNames,
        gather as gather,
        judge as judge,
    )
    from biograft.probing.similarity.letters import letter_similarity as letter_similarity
    from biograft.probing.similarity.queries import (
        SimilarityQueries as SimilarityQueries,
        SimilarityQuery as SimilarityQuery,
        build_queries as build_queries,
    )
    from biograft.probing.similarity.query_file import (
        read_queries as read_queries,
        write_queries as write_queries,
    )
    from biograft.probing.similarity.report import SimilarityReport as SimilarityReport
    from biograft.probing.similarity.sgns import train_sgns as train_sgns
    from biograft.probing.similarity.word_vectors import (
        TrainingConfig as TrainingConfig,
        WordVectors as WordVectors,
        read_training_text as read_training_text,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
