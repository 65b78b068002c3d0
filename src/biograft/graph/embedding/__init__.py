"""Embeddings of a graph: trained in compiled loops, kept in a folder, judged by their ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.graph.embedding.config import EmbeddingRecipe, shipped_embeddings
    from biograft.graph.embedding.embed import EmbeddingResult, embed_graph
    from biograft.graph.embedding.folder import Embeddings
    from biograft.graph.embedding.link_prediction import LinkPrediction, predict_links
    from biograft.graph.triples import SPLITS, graph_fingerprint, read_triples

__all__ = [
    "SPLITS",
    "EmbeddingRecipe",
    "EmbeddingResult",
    "Embeddings",
    "LinkPrediction",
    "embed_graph",
    "graph_fingerprint",
    "predict_links",
    "read_triples",
    "shipped_embeddings",
]

_HOMES = {
    "SPLITS": "biograft.graph.triples",
    "EmbeddingRecipe": "biograft.graph.embedding.config",
    "EmbeddingResult": "biograft.graph.embedding.embed",
    "Embeddings": "biograft.graph.embedding.folder",
    "LinkPrediction": "biograft.graph.embedding.link_prediction",
    "embed_graph": "biograft.graph.embedding.embed",
    "graph_fingerprint": "biograft.graph.triples",
    "predict_links": "biograft.graph.embedding.link_prediction",
    "read_triples": "biograft.graph.triples",
    "shipped_embeddings": "biograft.graph.embedding.config",
}

__getattr__ = load_on_use(__name__, _HOMES)
