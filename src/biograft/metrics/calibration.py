"""Whether a linker's probabilities mean what they say: calibration error, Brier score.

The expected calibration error puts the answers into bins by their probability and takes, over
the bins, the mean distance of accuracy and mean probability, weighted by the bins' sizes.

Of a run, what counts is every answer that was given: a concept, with its probability, against
whether it is right. Where the gold is NIL it is wrong, however unlikely it was said to be. An
answer of NIL states no probability and is left out; precision and recall of NIL tell of those.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError
from biograft.metrics.metric import Judgements, Measure, Values

N_BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """A bin of a reliability table; ``low`` and ``high`` bound its probabilities."""

    low: float
    high: float
    n: int
    probability: float
    """Mean probability given to its answers."""
    accuracy: float
    """Share of them that are right."""


def reliability(
    probability: Values, right: Values, n_bins: int = N_BINS, *, by_mass: bool = False
) -> list[Bin]:
    """Tabulate accuracy by probability, in bins of equal width or (``by_mass``) of equal size.

    Empty bins are left out. Equal probabilities share a bin, so that the order of the answers
    does not matter; bins of equal size may be uneven, or fewer, for it. A probability on the edge
    of two bins of equal width belongs to the upper one.
    """
    _check(probability, right, n_bins)
    edges = np.arange(n_bins + 1) / n_bins
    if by_mass and len(probability):
        cuts = np.arange(1, n_bins) * len(probability) // n_bins
        edges = np.unique(np.concatenate([[0.0], np.sort(probability)[cuts], [1.0]]))
    places = np.clip(np.searchsorted(edges, probability, side="right") - 1, 0, len(edges) - 2)
    return [
        _bin(probability[inside], right[inside], float(edges[place]), float(edges[place + 1]))
        for place in range(len(edges) - 1)
        if (inside := places == place).any()
    ]


def _bin(probability: Values, right: Values, low: float, high: float) -> Bin:
    return Bin(low, high, len(right), float(probability.mean()), float(right.mean()))


def calibration_error(
    probability: Values, right: Values, n_bins: int = N_BINS, *, by_mass: bool = False
) -> float:
    """Compute the expected calibration error; 0 without answers."""
    bins = reliability(probability, right, n_bins, by_mass=by_mass)
    total = sum(b.n for b in bins)
    return sum(b.n * abs(b.accuracy - b.probability) for b in bins) / total if total else 0.0


def brier_score(probability: Values, right: Values) -> float:
    """Compute the mean squared difference of probability and outcome; 0 without answers.

    An outcome between 0 and 1 (equal scores) is a chance, and the value the expected one.
    """
    _check(probability, right, 1)
    if not len(right):
        return 0.0
    return float((right * (1 - probability) ** 2 + (1 - right) * probability**2).mean())


def _check(probability: Values, right: Values, n_bins: int) -> None:
    if n_bins < 1:
        raise ConfigError(f"bins: expected at least 1, found {n_bins}")
    if np.isnan(probability).any():
        raise ConfigError(
            "some answers carry no probability; calibrate the linker, or leave ece and brier out"
        )
    if len(probability) != len(right):
        raise ConfigError(f"{len(probability)} probabilities for {len(right)} answers")
    if not (_within(probability) and _within(right)):
        raise ConfigError("probabilities and outcomes: expected numbers from 0 to 1")


def _within(values: npt.NDArray[np.float64]) -> bool:
    return bool(((values >= 0) & (values <= 1)).all())


def given_answers(judged: Judgements) -> tuple[Values, Values]:
    """Give the probability of each answer that is not NIL, and whether it is right."""
    given = ~judged.answered_nil
    return judged.probability[given], judged.right[given, 0]


def _of_first(judged: Judgements, *, by_mass: bool) -> float:
    return calibration_error(*given_answers(judged), by_mass=by_mass)


ECE = Measure(of_all=lambda judged, _: _of_first(judged, by_mass=False))
ECE_MASS = Measure(of_all=lambda judged, _: _of_first(judged, by_mass=True))
BRIER = Measure(of_all=lambda judged, _: brier_score(*given_answers(judged)))
