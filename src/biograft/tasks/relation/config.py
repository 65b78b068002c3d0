"""What may be chosen of relation extraction."""

from __future__ import annotations

from dataclasses import dataclass, field

from biograft.errors import ConfigError
from biograft.tasks.config import TaskTraining

ORDERS = ("text", "roles")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationConfig:
    """Which labels count, how mentions are shown and read, and how the model is trained."""

    negative: tuple[str, ...] = ("false", "DDI-false", "0")
    """Labels that say that there is no relation; F1 counts the others."""
    order: str = "text"
    """Whose state comes first: of the mention that stands first in the ``text``, as published,
    or of the example's first one (``roles``)."""
    named: bool = False
    """Whether the names of both mentions stay in the text, behind their indicators, for models that
    know what they name; else indicators take their place, as published."""
    dropout: float = 0.1
    training: TaskTraining = field(default_factory=TaskTraining)

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise ConfigError(f"order: expected one of {', '.join(ORDERS)}, found {self.order!r}")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout: expected a share below 1, found {self.dropout}")
