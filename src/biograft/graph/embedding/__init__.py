"""Graph embeddings: TransE and TransR, trained in compiled loops, and link prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.graph.config import (
        GraphRecipe as GraphRecipe,
        ModelConfig as ModelConfig,
    )
    from biograft.graph.embedding.embeddings import Embeddings as Embeddings
    from biograft.graph.embedding.loops import Tables as Tables
    from biograft.graph.embedding.ranking import (
        LinkPrediction as LinkPrediction,
        predict_links as predict_links,
    )
    from biograft.graph.embedding.training import (
        EmbeddingExecution as EmbeddingExecution,
        EmbeddingResult as EmbeddingResult,
        embed_graph as embed_graph,
    )
    from biograft.graph.triples import (
        SPLITS as SPLITS,
        graph_fingerprint as graph_fingerprint,
        read_triples as read_triples,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
