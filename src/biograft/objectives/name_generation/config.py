"""What may be chosen of name generation; the defaults are the published settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from biograft.errors import ConfigError, nearest
from biograft.objectives.weights import check_weight

if TYPE_CHECKING:
    from biograft.objectives.name_generation.objective import NameGeneration

FORMS = ("mean", "fairseq")


@dataclass(frozen=True, slots=True, kw_only=True)
class NameGenerationConfig:
    """How the tokens of a name are learned.

    ``label_smoothing`` is the share of the loss that goes to the whole vocabulary: in the form
    ``mean`` to all its tokens, in the form ``fairseq`` to all but the right one. ``r_drop``, where
    above 0, is the weight of how far two passes with different dropout differ.
    """

    reads: ClassVar[str] = "name_templates"
    """The kind of stream it learns from; mentions in context are learned by fine-tuning."""

    label_smoothing: float = 0.1
    form: str = "mean"
    r_drop: float = 0.0
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ConfigError(f"form: expected one of {', '.join(FORMS)}, "
                              f"found {self.form!r}; {nearest(self.form, FORMS)}")  # fmt: skip
        if not 0 <= self.label_smoothing < 1:
            raise ConfigError(
                f"label_smoothing: expected a share from 0 to below 1, found {self.label_smoothing}"
            )
        if not 0 <= self.r_drop < float("inf"):
            raise ConfigError(f"r_drop: expected a number of at least 0, found {self.r_drop}")
        check_weight(self.weight)

    def build(self) -> NameGeneration:
        """Make the objective."""
        from biograft.objectives.name_generation.objective import NameGeneration

        return NameGeneration(self)
