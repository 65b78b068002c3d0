"""Entity linking: which entity of the whole table a mention means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.objectives.entity_linking.config import EntityLinkingConfig as EntityLinkingConfig
    from biograft.objectives.entity_linking.objective import EntityLinking as EntityLinking


__getattr__, __dir__, __all__ = lazify(__name__)
