"""Entity linking: which entity of the whole table a mention means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.objectives.entity_linking.config import EntityLinkingConfig
    from biograft.objectives.entity_linking.objective import EntityLinking

__all__ = ["EntityLinking", "EntityLinkingConfig"]

_HOMES = {
    "EntityLinking": "biograft.objectives.entity_linking.objective",
    "EntityLinkingConfig": "biograft.objectives.entity_linking.config",
}

__getattr__ = load_on_use(__name__, _HOMES)
