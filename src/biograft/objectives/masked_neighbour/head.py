"""What relations make of mentions and entities, without projecting any entity (equation 18)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from biograft.objectives.graph import GraphOfEntities
from biograft.objectives.masked_neighbour.edges import Edges


class RelationProducts(nn.Module):
    """F_r = [M_r ; h_r] [M_r ; h_r]^T of every relation r, made once of TransR's; none learns.

    Its first columns are M_Pr: [h, s] M_Pr . e = (h M_r + s h_r) . (e M_r), with the sign s of an
    edge. The squared lengths of both sides come of it too.
    """

    forms: Tensor
    """(relations, dim + 1, dim + 1)"""

    def __init__(self, graph: GraphOfEntities) -> None:
        super().__init__()
        projections = torch.from_numpy(graph.projections)
        vectors = torch.from_numpy(graph.relation_vectors)
        both = torch.cat([projections, vectors[:, None]], 1).double()  # (relations, dim + 1, d_r)
        forms = (both @ both.mT).to(projections.dtype)
        self.forms = nn.Parameter(forms, requires_grad=False)

    def read(self, vectors: Tensor, edges: Edges) -> tuple[Tensor, Tensor]:
        """Read mentions (mentions, dim) through the relation of each edge.

        Gives what is multiplied with entities (edges, dim), and |h M_r + s h_r|^2 (edges,).
        """
        signed = torch.cat([vectors[edges.mention], edges.sign[:, None].to(vectors.dtype)], 1)
        read = torch.cat([part @ self.forms[number] for number, part in edges.parts(signed)])
        return read[:, :-1], (read * signed).sum(1)

    def squared_lengths(self, entities: Tensor, relation: int) -> Tensor:
        """Give |e M_r|^2 of entities (..., dim)."""
        return (entities @ self.forms[relation, :-1, :-1] * entities).sum(-1)


class KeptLengths:
    """The squared lengths of all entities of a table that does not learn.

    They are computed for a relation when it is first asked for, and anew if the table is written.
    """

    def __init__(self, products: RelationProducts) -> None:
        self._products = products
        self._table: tuple[object, ...] = ()
        self._lengths: dict[int, Tensor] = {}

    @torch.no_grad()
    def of(self, table: Tensor, relation: int) -> Tensor:
        """Give |e M_r|^2 of all entities: (entities,)."""
        found = (table.data_ptr(), table._version, table.device)
        if self._table != found:
            self._table, self._lengths = found, {}
        if relation not in self._lengths:
            self._lengths[relation] = self._products.squared_lengths(table, relation)
        return self._lengths[relation]
