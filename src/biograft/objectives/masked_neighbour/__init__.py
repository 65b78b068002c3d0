"""Masked neighbours: which entities are the neighbours of a mention's in the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.objectives.masked_neighbour.config import MaskedNeighbourConfig
    from biograft.objectives.masked_neighbour.objective import MaskedNeighbour

__all__ = ["MaskedNeighbour", "MaskedNeighbourConfig"]

_HOMES = {
    "MaskedNeighbour": "biograft.objectives.masked_neighbour.objective",
    "MaskedNeighbourConfig": "biograft.objectives.masked_neighbour.config",
}

__getattr__ = load_on_use(__name__, _HOMES)
