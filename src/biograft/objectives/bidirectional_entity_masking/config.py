"""What may be chosen of bidirectional entity masking; the defaults are EMBERT's, where stated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from biograft.errors import ConfigError
from biograft.objectives.reductions import check_reduction
from biograft.objectives.weights import check_weight

if TYPE_CHECKING:
    from biograft.objectives.bidirectional_entity_masking.objective import (
        BidirectionalEntityMasking,
    )
    from biograft.objectives.setting import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class BidirectionalEntityMaskingConfig:
    """How many long entities have a part hidden, and how it is foretold.

    Of the long entities of a sequence ``share`` have one of their two parts hidden, as long as no
    more than ``most_share`` of the sequence's tokens are. masked_tokens then hides so many less.
    Both directions are foretold by one head, or by one each (``shared = false``), with places in
    the part of ``position_dim`` dimensions; tokens beyond the first ``longest`` are hidden but not
    asked for. The losses of the directions are added up; each is with ``reduction`` ``mean`` the
    mean over tokens, with ``printed`` the sum over those of a sequence.
    """

    reads: ClassVar[str] = "annotated_text"
    """The kind of stream it learns from."""

    share: float = 0.5
    most_share: float = 0.15
    shared: bool = True
    position_dim: int = 200
    longest: int = 32
    reduction: str = "mean"
    weight: float = 0.5

    def __post_init__(self) -> None:
        for name in ("share", "most_share"):
            if not 0 < getattr(self, name) <= 1:
                raise ConfigError(
                    f"{name}: expected a share above 0 and at most 1, found {getattr(self, name)}"
                )
        for name in ("position_dim", "longest"):
            if getattr(self, name) < 1:
                raise ConfigError(
                    f"{name}: expected a number of at least 1, found {getattr(self, name)}"
                )
        check_reduction(self.reduction)
        check_weight(self.weight)

    def build(self, setting: Setting) -> BidirectionalEntityMasking:
        """Make the objective."""
        from biograft.objectives.bidirectional_entity_masking.objective import (
            BidirectionalEntityMasking,
        )

        return BidirectionalEntityMasking(self, setting)
