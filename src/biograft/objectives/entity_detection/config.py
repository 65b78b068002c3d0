"""What may be chosen of entity detection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from biograft.objectives.weights import check_weight

if TYPE_CHECKING:
    from biograft.objectives.entity_detection.objective import EntityDetection
    from biograft.objectives.setting import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityDetectionConfig:
    """How much detection counts."""

    reads: ClassVar[str] = "annotated_text"
    """The kind of stream it learns from."""

    weight: float = 1.0

    def __post_init__(self) -> None:
        check_weight(self.weight)

    def build(self, setting: Setting) -> EntityDetection:
        """Make the objective."""
        from biograft.objectives.entity_detection.objective import EntityDetection

        return EntityDetection(self)
