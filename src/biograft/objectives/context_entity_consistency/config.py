"""What may be chosen of context-entity consistency; the default is EMBERT's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from biograft.objectives.weights import check_weight

if TYPE_CHECKING:
    from biograft.objectives.context_entity_consistency.objective import ContextEntityConsistency
    from biograft.objectives.setting import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextEntityConsistencyConfig:
    """How much it counts; which entities are replaced by what is the stream's to say.

    The loss is the mean over replaced entities, as it is printed.
    """

    reads: ClassVar[str] = "annotated_text"
    """The kind of stream it learns from."""

    weight: float = 2.0

    def __post_init__(self) -> None:
        check_weight(self.weight)

    def build(self, setting: Setting) -> ContextEntityConsistency:
        """Make the objective."""
        from biograft.objectives.context_entity_consistency.objective import (
            ContextEntityConsistency,
        )

        return ContextEntityConsistency(self, setting)
