"""Bidirectional entity masking: of a long entity one part is foretold from the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.objectives.bidirectional_entity_masking.config import (
        BidirectionalEntityMaskingConfig,
    )
    from biograft.objectives.bidirectional_entity_masking.objective import (
        BidirectionalEntityMasking,
    )

__all__ = ["BidirectionalEntityMasking", "BidirectionalEntityMaskingConfig"]

_HOMES = {
    "BidirectionalEntityMasking": "biograft.objectives.bidirectional_entity_masking.objective",
    "BidirectionalEntityMaskingConfig": "biograft.objectives.bidirectional_entity_masking.config",
}

__getattr__ = load_on_use(__name__, _HOMES)
