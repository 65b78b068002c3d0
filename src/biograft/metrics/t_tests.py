"""Student's t: whether the mean of a few runs is a stated figure, or that of other runs.

The tests assume runs (seeds) drawn independently from a normal distribution, which so few can
hardly show; they tell how the papers' p-values were made. All are two-sided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, lgamma, log, log1p, sqrt
from statistics import fmean, variance

from biograft.errors import ConfigError

_TINY, _ENOUGH, _MOST_TERMS = 1e-300, 1e-15, 1000


@dataclass(frozen=True, slots=True)
class TTest:
    """A difference of means, and how likely chance alone would give as much."""

    difference: float
    t: float
    degrees: float
    p: float


def one_sample_t(values: Sequence[float], mean: float) -> TTest:
    """Compare the mean of some runs with a published figure."""
    _check(values)
    return _test(fmean(values) - mean, variance(values) / len(values), len(values) - 1)


def paired_t(a: Sequence[float], b: Sequence[float]) -> TTest:
    """Compare two systems by runs that belong together, such as those of one seed."""
    if len(a) != len(b):
        raise ConfigError(f"paired test: {len(a)} values against {len(b)}")
    return one_sample_t([x - y for x, y in zip(a, b, strict=True)], 0.0)


def welch_t(a: Sequence[float], b: Sequence[float]) -> TTest:
    """Compare two systems by runs that do not belong together, of whatever spread (Welch)."""
    _check(a)
    _check(b)
    parts = [(variance(values) / len(values), len(values) - 1) for values in (a, b)]
    error = sum(part for part, _ in parts)
    spread = sum(part**2 / n for part, n in parts)
    degrees = error**2 / spread if spread else float(len(a) + len(b) - 2)
    return _test(fmean(a) - fmean(b), error, degrees)


def _check(values: Sequence[float]) -> None:
    if len(values) < 2:
        raise ConfigError(f"t-test: expected at least 2 runs, found {len(values)}")


def _test(difference: float, error: float, degrees: float) -> TTest:
    """Make the test of a difference from the square of its standard error."""
    if error <= 0:  # every run gave the same
        t = 0.0 if difference == 0 else float("inf") * difference
        return TTest(difference, t, degrees, float(difference == 0))
    t = difference / sqrt(error)
    return TTest(difference, t, degrees, _beta_share(degrees / 2, 0.5, degrees / (degrees + t * t)))


def _beta_share(a: float, b: float, x: float) -> float:
    """Compute the regularised incomplete beta function I_x(a, b) by its continued fraction."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # the fraction converges quickly on the other side
        return 1 - _beta_share(b, a, 1 - x)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a
    value, c, d = 1.0, 1.0, 0.0  # Lentz's method
    for term in range(_MOST_TERMS):
        m = term // 2
        if term == 0:
            numerator = 1.0
        elif term % 2 == 0:
            numerator = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            numerator = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / _not_zero(1 + numerator * d)
        c = _not_zero(1 + numerator / c)
        value *= c * d
        if abs(1 - c * d) < _ENOUGH:
            break
    return front * (value - 1)


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
