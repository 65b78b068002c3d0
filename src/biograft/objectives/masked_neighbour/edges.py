"""The edges of mentions to the true neighbours of their entities, those of a relation together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from biograft.objectives.graph import GraphOfEntities


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges by ascending relation; those of one relation are in the order of their mentions."""

    mention: Tensor
    """(edges,): which of the mentions that were asked for."""
    neighbour: Tensor
    """Row of the table."""
    sign: Tensor
    """1 where the mention's entity is the head of the triple, -1 where it is the tail."""
    relations: list[int]
    """Those that occur, ascending."""
    sizes: list[int]
    """How many edges each of them has."""

    def __len__(self) -> int:
        return len(self.mention)

    def parts(self, values: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Give each relation and the values of its edges, of (edges, ...)."""
        return zip(self.relations, torch.split(values, self.sizes), strict=True)


@dataclass(frozen=True, slots=True)
class EdgeTable:
    """The edges of all entities, (entities, most neighbours), padded with -1."""

    neighbours: Tensor
    relations: Tensor
    signs: Tensor

    @classmethod
    def of(cls, graph: GraphOfEntities) -> EdgeTable:
        """Take them from the graph."""
        tables = (graph.neighbours, graph.relations, graph.signs)
        return cls(*(torch.from_numpy(table) for table in tables))

    def to(self, device: torch.device) -> EdgeTable:
        """Bring them to a device, unless they are there."""
        return EdgeTable(*(t.to(device) for t in (self.neighbours, self.relations, self.signs)))

    def edges(self, entities: Tensor) -> Edges:
        """List the edges of mentions of these entities (mentions,)."""
        neighbours = self.neighbours[entities]
        mention, column = (neighbours >= 0).nonzero(as_tuple=True)
        relation = self.relations[entities[mention], column]
        order = relation.argsort(stable=True)
        mention, column = mention[order], column[order]
        relations, sizes = torch.unique_consecutive(relation[order], return_counts=True)
        return Edges(
            mention=mention,
            neighbour=neighbours[mention, column],
            sign=self.signs[entities[mention], column],
            relations=relations.tolist(),
            sizes=sizes.tolist(),
        )
