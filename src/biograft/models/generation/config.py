"""Configuration of constrained beam search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from biograft.config import AtLeast, Config, Range


@dataclass(frozen=True, slots=True, kw_only=True)
class BeamConfig(Config):
    """The number of beams, and the score of a name.

    The score is the sum of the log-probabilities of the tokens of a name and its end, divided by
    their number to the power of ``length_penalty``. With ``renormalise``, probabilities are
    normalised over the tokens that continue some name instead of the whole vocabulary.
    ``published`` searches like the published code of GenBioEL: a finished name that is not among
    the best of its step is dropped, and one that is takes the place of a hypothesis.
    """

    beams: Annotated[int, AtLeast(1)] = 5
    """Number of hypotheses kept at each step."""
    renormalise: bool = False
    length_penalty: Annotated[float, Range()] = 1.0
    published: bool = False
