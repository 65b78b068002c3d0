"""Ranking again by context: a cross-encoder reads the mention in its text beside each candidate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.linking.rerank.config import RerankConfig, RerankTraining
    from biograft.linking.rerank.examples import RerankData, gather_examples
    from biograft.linking.rerank.reranker import ContextReranker, open_context_reranker
    from biograft.linking.rerank.training import train_reranker

__all__ = [
    "ContextReranker",
    "RerankConfig",
    "RerankData",
    "RerankTraining",
    "gather_examples",
    "open_context_reranker",
    "train_reranker",
]

_HOMES = {
    "ContextReranker": "biograft.linking.rerank.reranker",
    "RerankConfig": "biograft.linking.rerank.config",
    "RerankData": "biograft.linking.rerank.examples",
    "RerankTraining": "biograft.linking.rerank.config",
    "gather_examples": "biograft.linking.rerank.examples",
    "open_context_reranker": "biograft.linking.rerank.reranker",
    "train_reranker": "biograft.linking.rerank.training",
}

__getattr__ = load_on_use(__name__, _HOMES)
