"""Speed of the fast form of SMedBERT's equation 18, beside projecting every scored entity."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from timing import interleave
from torch import Tensor
from torch.nn.functional import embedding

from biograft.training.objectives.configs import MaskedNeighbourConfig
from biograft.training.objectives.examples import EntityGraph
from biograft.training.objectives.smedbert import (
    EdgeTable,
    NeighbourEdges,
    RelationProducts,
    Scorer,
    TypeSampler,
)

Form = Callable[..., Any]
"""Returns the scores of edges and columns, given the vectors of mentions and a table."""


def compare_forms(graph: EntityGraph, n_mentions: int, n_runs: int) -> dict[str, Any]:
    """Score true neighbours and sampled entities in both ways, and compare the times.

    The table does not learn, as in SMedBERT's recipe, so the fast form keeps the lengths of
    projected entities; they are made before anything is timed.
    """
    n_entities, dim = len(graph.neighbours), graph.projections.shape[1]
    vectors, table = torch.randn(n_mentions, dim), torch.randn(n_entities, dim)
    edges = EdgeTable.of(graph).edges(torch.randint(n_entities, (n_mentions,)))
    n_negatives = MaskedNeighbourConfig().n_negatives
    sampled = TypeSampler.of(graph).sample(edges.neighbour, torch.rand(len(edges), n_negatives))
    given = (vectors, table, edges, torch.cat([edges.neighbour[:, None], sampled], 1))
    forms = (Scorer(RelationProducts(graph), "eq16"), Projecting(graph))
    calls = [partial(way, form, *given) for way in (_forward, _forward_and_back) for form in forms]
    interleave(1, *calls)
    fast, slow, fast_back, slow_back = interleave(n_runs, *calls)
    return {
        "forward": round(fast.seconds / slow.seconds, 3),
        "with_backward": round(fast_back.seconds / slow_back.seconds, 3),
        "largest_difference": float((fast.result - slow.result).abs().max()),
        "n_edges": len(edges),
        "n_negatives": n_negatives,
        "n_entities": n_entities,
        "n_relations": len(graph.projections),
        "dim": dim,
    }


class Projecting:
    """Cosines of equation 16 as it is written: mentions and entities go through the relation."""

    def __init__(self, graph: EntityGraph) -> None:
        projections = torch.from_numpy(graph.projections)
        vectors = torch.from_numpy(graph.relation_vectors)
        self.both = torch.cat([projections, vectors[:, None]], 1)  # (relations, dim + 1, d_r)

    def __call__(
        self, vectors: Tensor, table: Tensor, edges: NeighbourEdges, columns: Tensor
    ) -> Tensor:
        """Score the entities of columns (edges, n), rows of the table, for mentions' vectors."""
        signed = torch.cat([vectors[edges.mention], edges.sign[:, None].to(vectors.dtype)], 1)
        entities = embedding(columns, table)  # (edges, n, dim)
        left = torch.cat([part @ self.both[r] for r, part in edges.parts(signed)])
        right = torch.cat([part @ self.both[r, :-1] for r, part in edges.parts(entities)])
        lengths: Tensor = left.norm(dim=1)[:, None] * right.norm(dim=2)
        return (right * left[:, None]).sum(2) / lengths


@torch.no_grad()
def _forward(form: Form, *given: Any) -> Any:
    return form(*given)


def _forward_and_back(form: Form, vectors: Tensor, *given: Any) -> None:
    form(vectors.clone().requires_grad_(), *given).sum().backward()
