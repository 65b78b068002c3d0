"""What may be chosen of masked mentions; the defaults are SMedBERT's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from biograft.objectives.reductions import MEAN_OR_SUM, check_reduction
from biograft.objectives.weights import check_weight

if TYPE_CHECKING:
    from biograft.objectives.masked_mention.objective import MaskedMention
    from biograft.objectives.setting import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedMentionConfig:
    """How much it counts.

    With ``reduction`` ``mean`` the loss is the mean over mentions, with ``sum`` the sum over those
    of a sequence. What stood in a mention is known of the tokens that ``masked_tokens`` hid; others
    count as they are.
    """

    reads: ClassVar[str] = "annotated_text"
    """The kind of stream it learns from."""

    reduction: str = "mean"
    weight: float = 4.0

    def __post_init__(self) -> None:
        check_reduction(self.reduction, MEAN_OR_SUM)
        check_weight(self.weight)

    def build(self, setting: Setting) -> MaskedMention:
        """Make the objective."""
        from biograft.objectives.masked_mention.objective import MaskedMention

        return MaskedMention(self, setting)
