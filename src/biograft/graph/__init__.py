"""The graph of a store: triples as arrays, graph embeddings, and ranked neighbours (PEPR)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.graph.neighbour_table import Edges as Edges, NeighbourTable as NeighbourTable
    from biograft.graph.neighbours import build_neighbours as build_neighbours
    from biograft.graph.pepr import PeprConfig as PeprConfig
    from biograft.graph.triples import (
        SPLITS as SPLITS,
        Triples as Triples,
        read_triples as read_triples,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
