"""Bidirectional entity masking: of a long entity one part is foretold from the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.objectives.bidirectional_entity_masking.config import (
        BidirectionalEntityMaskingConfig as BidirectionalEntityMaskingConfig,
    )
    from biograft.objectives.bidirectional_entity_masking.objective import (
        BidirectionalEntityMasking as BidirectionalEntityMasking,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
