"""How names are searched for."""

from __future__ import annotations

import math
from dataclasses import dataclass

from biograft.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class BeamConfig:
    """How wide the search is, and what a name scores.

    A name scores the mean log-probability of its tokens and its end, more exactly their sum over
    their number to the power of ``length_penalty``. ``renormalise`` shares probability among the
    tokens that some name goes on with, instead of among the whole vocabulary. ``published``
    searches as GenBioEL's published code does, where an ended name that is not among the best of
    its step is lost and takes a place if it is.
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
