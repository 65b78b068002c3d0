"""Entities drawn by how often they occur among those of the same type."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from biograft.objectives.graph import GraphOfEntities


@dataclass(frozen=True, slots=True)
class SameType:
    """Q(e) = t_e / C_e: the count of an entity, of all counts of its type; none is below 1.

    Entities of no type are of one of their own.
    """

    order: Tensor
    """(entities,): those of a type together."""
    sums: Tensor
    """(entities + 1,): the counts before each place of ``order``, added up."""
    first: Tensor
    """(entities,): where in ``order`` the type of each entity begins."""
    end: Tensor
    """Where it ends, exclusive."""
    log_rates: Tensor
    """(entities,): ln Q."""

    @classmethod
    def of(cls, graph: GraphOfEntities) -> SameType:
        """Add up the counts of a graph's entities."""
        counts = np.maximum(graph.counts, 1).astype(np.float64)
        order = np.argsort(graph.types, kind="stable")
        ascending = graph.types[order]
        sums = np.concatenate([[0.0], np.cumsum(counts[order])])
        first = np.searchsorted(ascending, graph.types, side="left")
        end = np.searchsorted(ascending, graph.types, side="right")
        log_rates = np.log(counts) - np.log(sums[end] - sums[first])
        return cls(*(torch.from_numpy(each) for each in (order, sums, first, end, log_rates)))

    def to(self, device: torch.device) -> SameType:
        """Bring it to a device, unless it is there."""
        tables = (self.order, self.sums, self.first, self.end, self.log_rates)
        return SameType(*(table.to(device) for table in tables))

    def draw(self, like: Tensor, n: int) -> Tensor:
        """Draw n entities of the type of each of these (m,), with replacement: (m, n)."""
        first, end = self.first[like, None], self.end[like, None]
        low, high = self.sums[first], self.sums[end]
        share = torch.rand(len(like), n, dtype=low.dtype, device=low.device)
        places = torch.searchsorted(self.sums[1:], low + share * (high - low), right=True)
        return self.order[torch.minimum(torch.maximum(places, first), end - 1)]
