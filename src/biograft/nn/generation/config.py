"""Configuration of constrained beam search."""

from __future__ import annotations

import math
from dataclasses import dataclass

from biograft.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class BeamConfig:
    """The number of beams, and the score of a name.

    The score is the sum of the log-probabilities of the tokens of a name and its end, divided by
    their number to the power of ``length_penalty``. With ``renormalise``, probabilities are
    normalised over the tokens that continue some name instead of the whole vocabulary.
    ``published`` searches like the published code of GenBioEL: a finished name that is not among
    the best of its step is dropped, and one that is takes the place of a hypothesis.
    """

    beams: int = 5
    renormalise: bool = False
    length_penalty: float = 1.0
    published: bool = False

    def __post_init__(self) -> None:
        if self.beams < 1:
            raise ConfigError(f"beams: expected at least 1, found {self.beams}")
        if not math.isfinite(self.length_penalty):
            raise ConfigError(f"length_penalty: expected a number, found {self.length_penalty}")
