"""What may be chosen of entity prediction; the defaults are ERNIE's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from biograft.errors import ConfigError
from biograft.objectives.weights import check_weight

if TYPE_CHECKING:
    from biograft.objectives.entity_prediction.objective import EntityPrediction
    from biograft.objectives.setting import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityPredictionConfig:
    """Which mentions are told something else than their own entity, and foretell it.

    Of the mentions of known entities ``withheld_share`` are told none and ``replaced_share`` a
    random one of the table; the others are told their own, and are not asked for it.
    """

    reads: ClassVar[str] = "annotated_text"
    """The kind of stream it learns from."""

    withheld_share: float = 0.15
    replaced_share: float = 0.05
    weight: float = 1.0

    def __post_init__(self) -> None:
        for name in ("withheld_share", "replaced_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(
                    f"{name}: expected a share from 0 to 1, found {getattr(self, name)}"
                )
        if not 0 < self.withheld_share + self.replaced_share <= 1:
            raise ConfigError(
                "withheld_share, replaced_share: expected a sum above 0 and at most 1, found "
                f"{self.withheld_share + self.replaced_share:g}"
            )
        check_weight(self.weight)

    def build(self, setting: Setting) -> EntityPrediction:
        """Make the objective."""
        from biograft.objectives.entity_prediction.objective import EntityPrediction

        return EntityPrediction(self, setting)
