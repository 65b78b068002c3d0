"""What may be chosen of next sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from biograft.objectives.weights import check_weight

if TYPE_CHECKING:
    from biograft.objectives.next_sentence.objective import NextSentence
    from biograft.objectives.setting import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class NextSentenceConfig:
    """How much it counts; how many pairs are strangers is the stream's to say."""

    reads: ClassVar[str] = "annotated_text"
    """The kind of stream it learns from."""

    weight: float = 1.0

    def __post_init__(self) -> None:
        check_weight(self.weight)

    def build(self, setting: Setting) -> NextSentence:
        """Make the objective."""
        from biograft.objectives.next_sentence.objective import NextSentence

        return NextSentence(self, setting)
