"""What may be chosen of sentence order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from biograft.errors import ConfigError
from biograft.objectives.weights import check_weight

if TYPE_CHECKING:
    from biograft.objectives.sentence_order.objective import SentenceOrder
    from biograft.objectives.setting import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceOrderConfig:
    """Which share of the sequences has its two parts swapped."""

    reads: ClassVar[str] = "annotated_text"
    """The kind of stream it learns from."""

    swapped_share: float = 0.5
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.swapped_share <= 1:
            raise ConfigError(
                f"swapped_share: expected a share from 0 to 1, found {self.swapped_share}"
            )
        check_weight(self.weight)

    def build(self, setting: Setting) -> SentenceOrder:
        """Make the objective."""
        from biograft.objectives.sentence_order.objective import SentenceOrder

        return SentenceOrder(self, setting)
