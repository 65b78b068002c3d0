"""Synonym alignment: names of one concept near each other, names of different ones far apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.objectives.synonym_alignment.config import (
        LOSSES as LOSSES,
        SynonymAlignmentConfig as SynonymAlignmentConfig,
    )
    from biograft.objectives.synonym_alignment.histogram import cosine_histogram as cosine_histogram
    from biograft.objectives.synonym_alignment.mining import (
        Mined as Mined,
        TripletMarginMiner as TripletMarginMiner,
    )
    from biograft.objectives.synonym_alignment.objective import SynonymAlignment as SynonymAlignment


__getattr__, __dir__, __all__ = lazify(__name__)
