"""How large a model is that is made from scratch."""

from __future__ import annotations

from dataclasses import dataclass

from biograft.errors import ConfigError

FEWEST_TOKENS = 300
"""The special tokens, all bytes, and some room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Sizes of a new model; ``n_tokens`` is what its vocabulary has at most.

    ``max_length`` is how many tokens it takes at most; ``dropout`` is also that of attention.
    """

    width: int = 256
    layers: int = 3
    heads: int = 4
    feed_forward: int = 1024
    n_tokens: int = 8000
    max_length: int = 256
    dropout: float = 0.1

    def __post_init__(self) -> None:
        least = {"n_tokens": FEWEST_TOKENS, "max_length": 8}
        for name in ("width", "layers", "heads", "feed_forward", "n_tokens", "max_length"):
            if getattr(self, name) < least.get(name, 1):
                raise ConfigError(
                    f"{name}: expected at least {least.get(name, 1)}, found {getattr(self, name)}"
                )
        if self.width % self.heads:
            raise ConfigError(
                f"heads: expected a divisor of the width {self.width}, found {self.heads}"
            )
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout: expected a share from 0 to below 1, found {self.dropout}")

    @property
    def spread(self) -> float:
        """The deviation of new weights.

        The usual 0.02 suits a width of 1,024; drawn so, a narrow model long attends to all alike.
        """
        return float(self.width**-0.5)
