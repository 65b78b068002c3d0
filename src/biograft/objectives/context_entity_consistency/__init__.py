"""Context-entity consistency: whether what stands around an entity speaks of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.objectives.context_entity_consistency.config import (
        ContextEntityConsistencyConfig as ContextEntityConsistencyConfig,
    )
    from biograft.objectives.context_entity_consistency.objective import (
        ContextEntityConsistency as ContextEntityConsistency,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
