"""Streams: what training reads, in an order that a seed fixes and a resumed run takes up again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from biograft.lazy import load_on_use
from biograft.registry import Registry

if TYPE_CHECKING:
    from biograft.streams.naming import NamingBatches, NamingExample, NamingExamples
    from biograft.streams.pair_batches import PairBatch, PairBatches
    from biograft.streams.pair_config import SynonymPairsConfig
    from biograft.streams.synonym_pairs import PairCounts, SynonymPairs

__all__ = [
    "STREAMS",
    "NamingBatches",
    "NamingExample",
    "NamingExamples",
    "PairBatch",
    "PairBatches",
    "PairCounts",
    "SynonymPairs",
    "SynonymPairsConfig",
]

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

_HOMES = {
    "NamingBatches": "biograft.streams.naming",
    "NamingExample": "biograft.streams.naming",
    "NamingExamples": "biograft.streams.naming",
    "PairBatch": "biograft.streams.pair_batches",
    "PairBatches": "biograft.streams.pair_batches",
    "PairCounts": "biograft.streams.synonym_pairs",
    "SynonymPairs": "biograft.streams.synonym_pairs",
    "SynonymPairsConfig": "biograft.streams.pair_config",
}

__getattr__ = load_on_use(__name__, _HOMES)
