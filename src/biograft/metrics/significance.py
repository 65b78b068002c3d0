"""How sure a figure or a difference is: bootstrap, approximate randomisation, McNemar.

Queries of one document are not independent, so whole documents are drawn (or exchanged). The
same seed gives the same result.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import exp, lgamma, log, log1p, sqrt
from statistics import fmean, variance

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError
from biograft.metrics.metric import Flags, Values
from biograft.metrics.precision_recall import Counts

N_RESAMPLES = 1000
LEVEL = 0.95
_BATCH_CELLS = 4_000_000
"""Numbers held at once while resampling."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Between which values a figure lies with the stated confidence."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Difference:
    """How much better one run is than another, and how sure that is."""

    difference: float
    interval: Interval
    p: float
    """Two-sided: how often chance alone would give as much."""


def bootstrap_interval(
    values: Values,
    groups: Sequence[Hashable] | None = None,
    *,
    n_resamples: int = N_RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
) -> Interval:
    """Give the percentile interval of a mean by drawing groups (or values) with replacement."""
    means = _resampled_means(values, groups, n_resamples, seed)
    return _interval(means, level)


def bootstrap_counts(
    counts: Sequence[Counts],
    *,
    n_resamples: int = N_RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
) -> dict[str, Interval]:
    """Give the percentile intervals of precision, recall and F1 of counts added up.

    Each of ``counts`` is that of one document; documents are drawn with replacement, and their
    counts added up anew, since none of the three is a mean over documents.
    """
    _check_resamples(n_resamples)
    table = np.array([(c.right, c.wrong, c.missed) for c in counts], np.float64).reshape(-1, 3)
    rng = np.random.default_rng(seed)
    sums = []
    for size in _batches(n_resamples, 3 * len(table)):
        drawn = rng.integers(0, max(len(table), 1), size=(size, len(table)))
        sums.append(table[drawn].sum(axis=1))
    right, wrong, missed = np.concatenate(sums).T
    figures = {
        "precision": _ratio(right, right + wrong),
        "recall": _ratio(right, right + missed),
        "f1": _ratio(2 * right, 2 * right + wrong + missed),
    }
    return {name: _interval(values, level) for name, values in figures.items()}


def paired_bootstrap(
    a: Values,
    b: Values,
    groups: Sequence[Hashable] | None = None,
    *,
    n_resamples: int = N_RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
) -> Difference:
    """Compare two runs on the same queries: interval of mean(a) - mean(b), and p.

    p is twice the share of resamples on the other side of 0, counted with one added resample so
    that it never is 0.
    """
    differences = _paired(a, b)
    means = _resampled_means(differences, groups, n_resamples, seed)
    side = min(int((means <= 0).sum()), int((means >= 0).sum()))
    p = min(1.0, 2 * (side + 1) / (n_resamples + 1))
    return Difference(_mean(differences), _interval(means, level), p)


def approximate_randomisation(
    a: Values,
    b: Values,
    groups: Sequence[Hashable] | None = None,
    *,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> float:
    """Give the two-sided p of mean(a) = mean(b), exchanging the runs by groups at random."""
    sums, _ = _by_group(_paired(a, b), groups)
    observed = abs(sums.sum())
    rng = np.random.default_rng(seed)
    at_least = 0
    for size in _batches(n_resamples, len(sums)):
        signs = rng.integers(0, 2, size=(size, len(sums)), dtype=np.int8) * 2.0 - 1.0
        # rounding must not part what is equal
        at_least += int((np.abs(signs @ sums) >= observed - 1e-9).sum())
    return (at_least + 1) / (n_resamples + 1)


def mcnemar_exact(a: Flags, b: Flags) -> float:
    """Give the exact two-sided p that two runs are right equally often (McNemar).

    Only queries on which they differ count: how many of them fall to either side is binomial.
    """
    if len(a) != len(b):
        raise ConfigError(f"paired test: {len(a)} values against {len(b)}")
    only_a, only_b = int((a & ~b).sum()), int((~a & b).sum())
    n, least = only_a + only_b, min(only_a, only_b)
    return min(1.0, 2 * sum(exp(_log_binomial(n, k)) for k in range(least + 1)))


def _log_binomial(n: int, k: int) -> float:
    """Logarithm of the chance of k heads in n throws."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - n * log(2)


def _paired(a: Values, b: Values) -> Values:
    if len(a) != len(b):
        raise ConfigError(f"paired test: {len(a)} values against {len(b)}")
    return np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)


def _resampled_means(
    values: Values, groups: Sequence[Hashable] | None, n_resamples: int, seed: int
) -> Values:
    """Draw as many groups as there are, again and again, and take the mean of their values."""
    _check_resamples(n_resamples)
    sums, sizes = _by_group(values, groups)
    if not len(sums):
        return np.zeros(n_resamples)
    rng = np.random.default_rng(seed)
    means = []
    for size in _batches(n_resamples, len(sums)):
        drawn = rng.integers(0, len(sums), size=(size, len(sums)))
        means.append(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1))
    return np.concatenate(means)


def _check_resamples(n_resamples: int) -> None:
    if n_resamples < 1:
        raise ConfigError(f"resamples: expected at least 1, found {n_resamples}")


def _ratio(part: Values, whole: Values) -> Values:
    """Divide; what would be a division by zero is 0, as in :class:`Counts`."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def _batches(n_resamples: int, n_groups: int) -> list[int]:
    size = max(1, min(n_resamples, _BATCH_CELLS // max(n_groups, 1)))
    return [min(size, n_resamples - start) for start in range(0, n_resamples, size)]


def _by_group(values: Values, groups: Sequence[Hashable] | None) -> tuple[Values, Values]:
    """Sum and count the values of each group; without groups each value is one."""
    values = np.asarray(values, dtype=np.float64)
    if groups is None:
        return values, np.ones(len(values))
    if len(groups) != len(values):
        raise ConfigError(f"{len(groups)} groups for {len(values)} values")
    numbers: dict[Hashable, int] = {}
    places: npt.NDArray[np.intp] = np.array(
        [numbers.setdefault(group, len(numbers)) for group in groups], dtype=np.intp
    )
    sums = np.zeros(len(numbers))
    np.add.at(sums, places, values)
    return sums, np.bincount(places, minlength=len(numbers)).astype(np.float64)


def _interval(means: Values, level: float) -> Interval:
    if not 0 < level < 1:
        raise ConfigError(f"level: expected a number between 0 and 1, found {level}")
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def _mean(values: Values) -> float:
    return float(values.mean()) if len(values) else 0.0


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
