"""Synonym alignment: names of one concept near each other, names of different ones far apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.objectives.synonym_alignment.config import LOSSES, SynonymAlignmentConfig
    from biograft.objectives.synonym_alignment.histogram import cosine_histogram
    from biograft.objectives.synonym_alignment.mining import Mined, TripletMarginMiner
    from biograft.objectives.synonym_alignment.objective import SynonymAlignment

__all__ = [
    "LOSSES",
    "Mined",
    "SynonymAlignment",
    "SynonymAlignmentConfig",
    "TripletMarginMiner",
    "cosine_histogram",
]

_HOMES = {
    "LOSSES": "biograft.objectives.synonym_alignment.config",
    "Mined": "biograft.objectives.synonym_alignment.mining",
    "SynonymAlignment": "biograft.objectives.synonym_alignment.objective",
    "SynonymAlignmentConfig": "biograft.objectives.synonym_alignment.config",
    "TripletMarginMiner": "biograft.objectives.synonym_alignment.mining",
    "cosine_histogram": "biograft.objectives.synonym_alignment.histogram",
}

__getattr__ = load_on_use(__name__, _HOMES)
