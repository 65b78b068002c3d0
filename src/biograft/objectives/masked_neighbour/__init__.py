"""Masked neighbours: which entities are the neighbours of a mention's in the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.objectives.masked_neighbour.config import (
        MaskedNeighbourConfig as MaskedNeighbourConfig,
    )
    from biograft.objectives.masked_neighbour.objective import MaskedNeighbour as MaskedNeighbour


__getattr__, __dir__, __all__ = lazify(__name__)
