"""What may be chosen of entity segmentation; the defaults are EMBERT's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from biograft.objectives.reductions import check_reduction
from biograft.objectives.weights import check_weight

if TYPE_CHECKING:
    from biograft.objectives.entity_segmentation.objective import EntitySegmentation
    from biograft.objectives.setting import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class EntitySegmentationConfig:
    """How much it counts.

    With ``reduction`` ``mean`` the loss is the mean over the tokens of long entities, with
    ``printed`` the sum over those of a sequence.
    """

    reads: ClassVar[str] = "annotated_text"
    """The kind of stream it learns from."""

    reduction: str = "mean"
    weight: float = 2.0

    def __post_init__(self) -> None:
        check_reduction(self.reduction)
        check_weight(self.weight)

    def build(self, setting: Setting) -> EntitySegmentation:
        """Make the objective."""
        from biograft.objectives.entity_segmentation.objective import EntitySegmentation

        return EntitySegmentation(self, setting)
