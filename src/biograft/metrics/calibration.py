"""Calibration metrics: expected calibration error (ECE), Brier score, reliability table.

ECE bins the answers by probability and averages the difference of accuracy and mean probability
over the bins, weighted by size.

Every predicted concept counts, with its probability; where the gold is NIL it is wrong. NIL answers
have no probability and are left out; precision and recall of NIL cover them.
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
    """Mean probability of its answers."""
    accuracy: float
    """Fraction of them that are right."""


def reliability(
    probability: Values, right: Values, n_bins: int = N_BINS, *, by_mass: bool = False
) -> list[Bin]:
    """Tabulate accuracy by probability, in bins of equal width or (``by_mass``) of equal size.

    Empty bins are left out. Equal probabilities share a bin, so bins of equal size may be uneven or
    fewer. A probability on the edge of two bins of equal width belongs to the upper one.
    """
    _check(probability, right, n_bins)
    edges = np.arange(n_bins + 1) / n_bins
    if by_mass and len(probability):
        cuts = np.arange(1, n_bins) * len(probability) // n_bins
        edges = np.unique(np.concatenate([[0.0], np.sort(probability)[cuts], [1.0]]))
    indices = np.clip(np.searchsorted(edges, probability, side="right") - 1, 0, len(edges) - 2)
    return [
        _bin(probability[inside], right[inside], float(edges[index]), float(edges[index + 1]))
        for index in range(len(edges) - 1)
        if (inside := indices == index).any()
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

    An outcome between 0 and 1 (tied scores) is a probability, and the result its expected value.
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


def concept_answers(judgements: Judgements) -> tuple[Values, Values]:
    """Return the probability of each answer that is not NIL, and whether it is right."""
    mask = ~judgements.answered_nil
    return judgements.probability[mask], judgements.right[mask, 0]


def _run_error(judgements: Judgements, *, by_mass: bool) -> float:
    return calibration_error(*concept_answers(judgements), by_mass=by_mass)


ECE = Measure(of_all=lambda judgements, _: _run_error(judgements, by_mass=False))
ECE_MASS = Measure(of_all=lambda judgements, _: _run_error(judgements, by_mass=True))
BRIER = Measure(of_all=lambda judgements, _: brier_score(*concept_answers(judgements)))
