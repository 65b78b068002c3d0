"""Whether names of the same thing lie nearer to one another than names that look like them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.probing.similarity.config import SimilarityConfig
    from biograft.probing.similarity.encoding import NameEncoder
    from biograft.probing.similarity.frequencies import count_names, with_frequencies
    from biograft.probing.similarity.glove import train_glove
    from biograft.probing.similarity.judging import AskedNames, gather, judge
    from biograft.probing.similarity.letters import letter_similarity
    from biograft.probing.similarity.queries import (
        SimilarityQueries,
        SimilarityQuery,
        build_queries,
    )
    from biograft.probing.similarity.query_file import read_queries, write_queries
    from biograft.probing.similarity.report import SimilarityReport
    from biograft.probing.similarity.sgns import train_sgns
    from biograft.probing.similarity.word_vectors import (
        TrainingConfig,
        WordVectors,
        read_training_text,
    )

__all__ = [
    "AskedNames",
    "NameEncoder",
    "SimilarityConfig",
    "SimilarityQueries",
    "SimilarityQuery",
    "SimilarityReport",
    "TrainingConfig",
    "WordVectors",
    "build_queries",
    "count_names",
    "gather",
    "judge",
    "letter_similarity",
    "read_queries",
    "read_training_text",
    "train_glove",
    "train_sgns",
    "with_frequencies",
    "write_queries",
]

_HOMES = {
    "AskedNames": "biograft.probing.similarity.judging",
    "NameEncoder": "biograft.probing.similarity.encoding",
    "SimilarityConfig": "biograft.probing.similarity.config",
    "SimilarityQueries": "biograft.probing.similarity.queries",
    "SimilarityQuery": "biograft.probing.similarity.queries",
    "SimilarityReport": "biograft.probing.similarity.report",
    "TrainingConfig": "biograft.probing.similarity.word_vectors",
    "WordVectors": "biograft.probing.similarity.word_vectors",
    "build_queries": "biograft.probing.similarity.queries",
    "count_names": "biograft.probing.similarity.frequencies",
    "gather": "biograft.probing.similarity.judging",
    "judge": "biograft.probing.similarity.judging",
    "letter_similarity": "biograft.probing.similarity.letters",
    "read_queries": "biograft.probing.similarity.query_file",
    "read_training_text": "biograft.probing.similarity.word_vectors",
    "train_glove": "biograft.probing.similarity.glove",
    "train_sgns": "biograft.probing.similarity.sgns",
    "with_frequencies": "biograft.probing.similarity.frequencies",
    "write_queries": "biograft.probing.similarity.query_file",
}

__getattr__ = load_on_use(__name__, _HOMES)
