"""What may be chosen of entity linking; the default is KeBioLM's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from biograft.errors import ConfigError
from biograft.objectives.weights import check_weight

if TYPE_CHECKING:
    from biograft.objectives.entity_linking.objective import EntityLinking
    from biograft.objectives.setting import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityLinkingConfig:
    """Against which entities the right one is told.

    With ``n_sampled`` 0 it is the whole table, as published; for very large tables, so many
    entities drawn by how often they occur. ``max_scores`` bounds how many scores of mentions and
    entities are held at once; more are computed in parts.
    """

    reads: ClassVar[str] = "annotated_text"
    """The kind of stream it learns from."""

    n_sampled: int = 0
    max_scores: int = 1 << 25
    weight: float = 1.0

    def __post_init__(self) -> None:
        for name, least in (("n_sampled", 0), ("max_scores", 1)):
            if getattr(self, name) < least:
                raise ConfigError(
                    f"{name}: expected a number of at least {least}, found {getattr(self, name)}"
                )
        check_weight(self.weight)

    def build(self, setting: Setting) -> EntityLinking:
        """Make the objective."""
        from biograft.objectives.entity_linking.objective import EntityLinking

        return EntityLinking(self, setting.entity_counts)
