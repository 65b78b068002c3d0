"""Streams: what training reads, in an order that a seed fixes and a resumed run takes up again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from biograft.lazy import lazify
from biograft.registry import Registry

if TYPE_CHECKING:
    from biograft.streams.naming import (
        NamingBatches as NamingBatches,
        NamingExample as NamingExample,
        NamingExamples as NamingExamples,
    )
    from biograft.streams.pair_batches import PairBatch as PairBatch, PairBatches as PairBatches
    from biograft.streams.pair_config import SynonymPairsConfig as SynonymPairsConfig
    from biograft.streams.synonym_pairs import (
        PairCounts as PairCounts,
        SynonymPairs as SynonymPairs,
    )


STREAMS: Registry[Any] = Registry(
    "stream",
    {
        "synonym_pairs": (
            "biograft.streams.pair_config:SynonymPairsConfig",
            "pairs of names of one concept of a knowledge base",
        ),
        "annotated_text": (
            "biograft.streams.annotated.config:AnnotatedTextConfig",
            "running text with linked mentions, as sequences of tokens",
        ),
        "name_templates": (
            "biograft.streams.templates.config:NameTemplatesConfig",
            "sentences about the concepts of a knowledge base, and the names to give",
        ),
    },
)
"""The configuration of every stream."""


__getattr__, __dir__, __all__ = lazify(__name__, "STREAMS")
