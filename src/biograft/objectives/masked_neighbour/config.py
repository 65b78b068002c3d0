"""What may be chosen of masked neighbours; the defaults are SMedBERT's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from biograft.errors import ConfigError
from biograft.objectives.choices import check_choice
from biograft.objectives.reductions import MEAN_OR_SUM, check_reduction
from biograft.objectives.weights import check_weight

if TYPE_CHECKING:
    from biograft.objectives.masked_neighbour.objective import MaskedNeighbour
    from biograft.objectives.setting import Setting

FORMS = ("eq16", "eq19")
CORRECTIONS = ("log_q", "mu_log_q", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedNeighbourConfig:
    """How neighbours are scored, and against how many other entities.

    A score is ``mu`` times a cosine. With ``form`` ``eq16`` both sides are seen through the
    relation; ``eq19`` takes the cosine of what the fast computation has before its last product.
    ``correction`` is what is taken off each score for how likely its entity is drawn: the
    logarithm, ``mu`` times it, or nothing. With ``reduction`` ``mean`` the loss is the mean over
    true neighbours, with ``sum`` the sum over those of a sequence.
    """

    reads: ClassVar[str] = "annotated_text"
    """The kind of stream it learns from."""

    n_negatives: int = 10
    mu: float = 10.0
    form: str = "eq16"
    correction: str = "log_q"
    reduction: str = "mean"
    weight: float = 2.0

    def __post_init__(self) -> None:
        if self.n_negatives < 1:
            raise ConfigError(
                f"n_negatives: expected a number of at least 1, found {self.n_negatives}"
            )
        if not 0 < self.mu < float("inf"):
            raise ConfigError(f"mu: expected a number above 0, found {self.mu}")
        check_choice("form", self.form, FORMS)
        check_choice("correction", self.correction, CORRECTIONS)
        check_reduction(self.reduction, MEAN_OR_SUM)
        check_weight(self.weight)

    def build(self, setting: Setting) -> MaskedNeighbour:
        """Make the objective."""
        from biograft.objectives.masked_neighbour.objective import MaskedNeighbour

        return MaskedNeighbour(self, setting)
