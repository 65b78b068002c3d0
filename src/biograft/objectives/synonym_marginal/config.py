"""What may be chosen of synonym marginalisation."""

from __future__ import annotations

from dataclasses import dataclass

from biograft.errors import ConfigError

SIMILARITIES = ("cosine", "dot")


@dataclass(frozen=True, slots=True, kw_only=True)
class SynonymMarginalConfig:
    """How a name is scored for a mention: (similarity + weight * lexical score) / temperature.

    ``similarity`` is the inner product of vectors of length 1 (``cosine``) or as they are
    (``dot``; BioSyn's, with a temperature of 1). The weight is learned: it starts at
    ``lexical_weight`` and moves ``pace`` times as fast as the other weights, because one number
    among numbers of that size would hardly move at an encoder's learning rate.
    """

    similarity: str = "cosine"
    temperature: float = 0.05
    lexical_weight: float = 0.5
    pace: float = 500.0

    def __post_init__(self) -> None:
        if self.similarity not in SIMILARITIES:
            raise ConfigError(
                f"similarity: expected one of {', '.join(SIMILARITIES)}, found {self.similarity!r}"
            )
        for name in ("temperature", "pace"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ConfigError(f"{name}: expected a number above 0, found {getattr(self, name)}")
        if not 0 <= self.lexical_weight < float("inf"):
            raise ConfigError(
                f"lexical_weight: expected a number of at least 0, found {self.lexical_weight}"
            )
