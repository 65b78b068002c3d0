"""Context-entity consistency: whether what stands around an entity speaks of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.objectives.context_entity_consistency.config import ContextEntityConsistencyConfig
    from biograft.objectives.context_entity_consistency.objective import ContextEntityConsistency

__all__ = ["ContextEntityConsistency", "ContextEntityConsistencyConfig"]

_HOMES = {
    "ContextEntityConsistency": "biograft.objectives.context_entity_consistency.objective",
    "ContextEntityConsistencyConfig": "biograft.objectives.context_entity_consistency.config",
}

__getattr__ = load_on_use(__name__, _HOMES)
