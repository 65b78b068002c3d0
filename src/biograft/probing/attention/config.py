"""Which attention is looked at: of which layer, of which head, in which direction."""

from __future__ import annotations

from dataclasses import dataclass

from biograft.errors import ConfigError

DIRECTIONS = ("to", "from")
CURVES_LAYER, INSIDE_LAYER = 11, 10
"""EMBERT's layers: for what stands around an entity, and for what goes on inside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionConfig:
    """Layers and heads are counted from 1, as in papers."""

    layer: int = 0
    """0: EMBERT's, or the last but one of an encoder that has fewer layers."""
    head: int = 0
    """0: all heads of the layer, summed."""
    direction: str = "to"
    """``to``: how much the context attends to the entity; ``from``: the other way round."""

    def __post_init__(self) -> None:
        for name in ("layer", "head"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name}: expected 0 or more, found {getattr(self, name)}")
        if self.direction not in DIRECTIONS:
            raise ConfigError(
                f"direction: expected {' or '.join(DIRECTIONS)}, found {self.direction!r}"
            )

    @property
    def around(self) -> str:
        """Say what the curves show."""
        return f"attention {self.direction} the entity, {self._heads}"

    @property
    def inside(self) -> str:
        """Say what the heat maps show."""
        return f"attention among the entity's tokens, {self._heads}"

    @property
    def _heads(self) -> str:
        return f"head {self.head}" if self.head else "all heads summed"


def choose_layer(asked: int, usual: int, n_layers: int, name: str) -> int:
    """Give the layer asked for; for 0 the usual one, or the last but one where it is not there."""
    if asked > n_layers:
        raise ConfigError(f"layer: expected 1 to {n_layers}, the layers of {name}, found {asked}")
    return asked or (usual if usual <= n_layers else max(n_layers - 1, 1))
