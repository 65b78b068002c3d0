"""The graph of a store: triples as arrays, graph embeddings, and ranked neighbours (PEPR)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.graph.config import (
        LossConfig as LossConfig,
        ModelConfig as ModelConfig,
        OptimiserConfig as OptimiserConfig,
        PeprConfig as PeprConfig,
        SamplingConfig as SamplingConfig,
    )
    from biograft.graph.embedding import (
        EmbeddingExecution as EmbeddingExecution,
        Embeddings as Embeddings,
        GraphRecipe as GraphRecipe,
        embed_graph as embed_graph,
        predict_links as predict_links,
    )
    from biograft.graph.embedding.embeddings import start_tables as start_tables
    from biograft.graph.embedding.loops import make_sampler as make_sampler
    from biograft.graph.embedding.ranking import (
        LinkPrediction as LinkPrediction,
        rank_triples as rank_triples,
    )
    from biograft.graph.neighbours import (
        Edges as Edges,
        NeighbourTable as NeighbourTable,
        build_neighbours as build_neighbours,
    )
    from biograft.graph.pepr import (
        PageRank as PageRank,
        Ranked as Ranked,
        build_adjacency as build_adjacency,
        stationary_distribution as stationary_distribution,
    )
    from biograft.graph.triples import (
        SPLITS as SPLITS,
        Triples as Triples,
        read_triples as read_triples,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
