"""The graph of a store: its relations as arrays, embeddings of its entities, their neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.graph.neighbour_table import Edges, NeighbourTable
    from biograft.graph.neighbours import build_neighbours
    from biograft.graph.pepr import PeprConfig
    from biograft.graph.triples import SPLITS, Triples, read_triples

__all__ = [
    "SPLITS",
    "Edges",
    "NeighbourTable",
    "PeprConfig",
    "Triples",
    "build_neighbours",
    "read_triples",
]

_HOMES = {
    "SPLITS": "biograft.graph.triples",
    "Edges": "biograft.graph.neighbour_table",
    "NeighbourTable": "biograft.graph.neighbour_table",
    "PeprConfig": "biograft.graph.pepr",
    "Triples": "biograft.graph.triples",
    "build_neighbours": "biograft.graph.neighbours",
    "read_triples": "biograft.graph.triples",
}

__getattr__ = load_on_use(__name__, _HOMES)
