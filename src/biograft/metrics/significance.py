"""Bootstrap intervals and significance tests: randomisation, McNemar and t-tests.

Queries of one document are not independent, so whole documents are resampled (or exchanged). The
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
_BATCH_VALUES = 4_000_000
"""Maximum number of values held in memory while resampling."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two runs, with its interval and p-value."""

    difference: float
    interval: Interval
    p: float
    """Two-sided p-value."""


def bootstrap_interval(
    values: Values,
    groups: Sequence[Hashable] | None = None,
    *,
    n_resamples: int = N_RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
) -> Interval:
    """Compute the percentile interval of a mean by resampling groups (or values)."""
    means = _resampled_means(values, groups, n_resamples, seed)
    return quantile_interval(means, level)


def bootstrap_counts(
    counts: Sequence[Counts],
    *,
    n_resamples: int = N_RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
) -> dict[str, Interval]:
    """Compute the percentile intervals of precision, recall and F1 of summed counts.

    Each of ``counts`` belongs to one document. Documents are resampled and their counts summed,
    since none of the three metrics is a mean over documents.
    """
    _check_resamples(n_resamples)
    table = _count_table(counts)
    rng = np.random.default_rng(seed)
    sums = []
    for size in _batches(n_resamples, 3 * len(table)):
        sampled = rng.integers(0, max(len(table), 1), size=(size, len(table)))
        sums.append(table[sampled].sum(axis=1))
    metrics = _count_metrics(np.concatenate(sums))
    return {name: quantile_interval(values, level) for name, values in metrics.items()}


def _count_table(counts: Sequence[Counts]) -> Values:
    table = np.array([(c.right, c.wrong, c.missed) for c in counts], np.float64)
    return table.reshape(-1, 3)


def _count_metrics(sums: Values) -> dict[str, Values]:
    """Compute precision, recall and F1 of each row of sums."""
    right, wrong, missed = sums.T
    return {
        "precision": _ratio(right, right + wrong),
        "recall": _ratio(right, right + missed),
        "f1": _ratio(2 * right, 2 * right + wrong + missed),
    }


def paired_counts(
    a: Sequence[Counts],
    b: Sequence[Counts],
    metric: str = "f1",
    *,
    n_resamples: int = N_RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
) -> tuple[Difference, float]:
    """Compare F1, precision or recall of two runs, whose counts are of the same documents.

    Return the difference with the interval and p of a paired bootstrap, and the p of an approximate
    randomisation test, which exchanges the runs document by document.
    """
    if len(a) != len(b):
        raise ConfigError(f"paired test: {len(a)} documents against {len(b)}")
    _check_resamples(n_resamples)
    tables = np.stack([_count_table(a), _count_table(b)])  # (runs, documents, counts)
    rng = np.random.default_rng(seed)
    n = tables.shape[1]

    def difference(first: Values, second: Values) -> Values:
        values = [_count_metrics(np.atleast_2d(sums))[metric] for sums in (first, second)]
        return values[0] - values[1]

    observed = float(difference(*tables.sum(axis=1))[0])
    weights = rng.multinomial(n, np.full(n, 1 / n), size=n_resamples).astype(np.float64)
    resampled = difference(weights @ tables[0], weights @ tables[1])
    side = min(int((resampled <= 0).sum()), int((resampled >= 0).sum()))
    p = min(1.0, 2 * (side + 1) / (n_resamples + 1))
    swapped = rng.integers(0, 2, size=(n_resamples, n)).astype(np.float64)
    total, gap = tables.sum(axis=(0, 1)), tables[1] - tables[0]
    first = tables[0].sum(axis=0) + swapped @ gap
    extreme = np.abs(difference(first, total - first)) >= abs(observed) - 1e-12
    randomisation = (int(extreme.sum()) + 1) / (n_resamples + 1)
    return Difference(observed, quantile_interval(resampled, level), p), randomisation


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

    p is twice the fraction of resamples on the other side of 0, with one added resample so that it
    is never 0.
    """
    differences = _paired(a, b)
    means = _resampled_means(differences, groups, n_resamples, seed)
    side = min(int((means <= 0).sum()), int((means >= 0).sum()))
    p = min(1.0, 2 * (side + 1) / (n_resamples + 1))
    return Difference(_mean(differences), quantile_interval(means, level), p)


def approximate_randomisation(
    a: Values,
    b: Values,
    groups: Sequence[Hashable] | None = None,
    *,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> float:
    """Compute the two-sided p of mean(a) = mean(b), exchanging the runs by groups at random."""
    sums, _ = group_sums(_paired(a, b), groups)
    observed = abs(sums.sum())
    rng = np.random.default_rng(seed)
    n_extreme = 0
    for size in _batches(n_resamples, len(sums)):
        signs = rng.integers(0, 2, size=(size, len(sums)), dtype=np.int8) * 2.0 - 1.0
        # rounding must not separate equal values
        n_extreme += int((np.abs(signs @ sums) >= observed - 1e-9).sum())
    return (n_extreme + 1) / (n_resamples + 1)


def mcnemar_exact(a: Flags, b: Flags) -> float:
    """Compute the exact two-sided p that two runs are right equally often (McNemar).

    Only queries on which they differ count; their split is binomial.
    """
    if len(a) != len(b):
        raise ConfigError(f"paired test: {len(a)} values against {len(b)}")
    only_a, only_b = int((a & ~b).sum()), int((~a & b).sum())
    n, smaller = only_a + only_b, min(only_a, only_b)
    return min(1.0, 2 * sum(exp(_log_binomial(n, k)) for k in range(smaller + 1)))


def _log_binomial(n: int, k: int) -> float:
    """Return the logarithm of the binomial probability of k in n at 1/2."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - n * log(2)


def _paired(a: Values, b: Values) -> Values:
    if len(a) != len(b):
        raise ConfigError(f"paired test: {len(a)} values against {len(b)}")
    return np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)


def _resampled_means(
    values: Values, groups: Sequence[Hashable] | None, n_resamples: int, seed: int
) -> Values:
    """Resample groups with replacement and return the mean of each resample."""
    _check_resamples(n_resamples)
    sums, sizes = group_sums(values, groups)
    if not len(sums):
        return np.zeros(n_resamples)
    rng = np.random.default_rng(seed)
    means = []
    for size in _batches(n_resamples, len(sums)):
        sampled = rng.integers(0, len(sums), size=(size, len(sums)))
        means.append(sums[sampled].sum(axis=1) / sizes[sampled].sum(axis=1))
    return np.concatenate(means)


def _check_resamples(n_resamples: int) -> None:
    if n_resamples < 1:
        raise ConfigError(f"resamples: expected at least 1, found {n_resamples}")


def _ratio(numerator: Values, denominator: Values) -> Values:
    """Divide; a division by zero gives 0, as in :class:`Counts`."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def _batches(n_resamples: int, n_groups: int) -> list[int]:
    size = max(1, min(n_resamples, _BATCH_VALUES // max(n_groups, 1)))
    return [min(size, n_resamples - start) for start in range(0, n_resamples, size)]


def group_sums(values: Values, groups: Sequence[Hashable] | None) -> tuple[Values, Values]:
    """Sum and count the values of each group; without groups each value is a group."""
    values = np.asarray(values, dtype=np.float64)
    if groups is None:
        return values, np.ones(len(values))
    if len(groups) != len(values):
        raise ConfigError(f"{len(groups)} groups for {len(values)} values")
    codes: dict[Hashable, int] = {}
    indices: npt.NDArray[np.intp] = np.array(
        [codes.setdefault(group, len(codes)) for group in groups], dtype=np.intp
    )
    sums = np.zeros(len(codes))
    np.add.at(sums, indices, values)
    return sums, np.bincount(indices, minlength=len(codes)).astype(np.float64)


def quantile_interval(means: Values, level: float) -> Interval:
    """Return the quantiles of resampled means that hold this part of them between."""
    if not 0 < level < 1:
        raise ConfigError(f"level: expected a number between 0 and 1, found {level}")
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def _mean(values: Values) -> float:
    return float(values.mean()) if len(values) else 0.0


_TINY, _PRECISION, _MAX_TERMS = 1e-300, 1e-15, 1000


@dataclass(frozen=True, slots=True)
class TTest:
    """A difference of means with its t statistic and p-value."""

    difference: float
    t: float
    degrees: float
    p: float


def one_sample_t(values: Sequence[float], mean: float) -> TTest:
    """Compare the mean of some runs with a published result."""
    _check(values)
    return _test(fmean(values) - mean, variance(values) / len(values), len(values) - 1)


def paired_t(a: Sequence[float], b: Sequence[float]) -> TTest:
    """Compare two systems by paired runs, such as those of one seed."""
    if len(a) != len(b):
        raise ConfigError(f"paired test: {len(a)} values against {len(b)}")
    return one_sample_t([x - y for x, y in zip(a, b, strict=True)], 0.0)


def welch_t(a: Sequence[float], b: Sequence[float]) -> TTest:
    """Compare two systems by independent runs, with unequal variances (Welch)."""
    _check(a)
    _check(b)
    terms = [(variance(values) / len(values), len(values) - 1) for values in (a, b)]
    error = sum(numerator for numerator, _ in terms)
    spread = sum(numerator**2 / n for numerator, n in terms)
    degrees = error**2 / spread if spread else float(len(a) + len(b) - 2)
    return _test(fmean(a) - fmean(b), error, degrees)


def _check(values: Sequence[float]) -> None:
    if len(values) < 2:
        raise ConfigError(f"t-test: expected at least 2 runs, found {len(values)}")


def _test(difference: float, error: float, degrees: float) -> TTest:
    """Return the test of a difference from its squared standard error."""
    if error <= 0:  # no variance
        t = 0.0 if difference == 0 else float("inf") * difference
        return TTest(difference, t, degrees, float(difference == 0))
    t = difference / sqrt(error)
    return TTest(
        difference, t, degrees, _incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t))
    )


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Compute the regularised incomplete beta function I_x(a, b) by its continued fraction."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # the fraction converges quickly on the other side
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a
    value, c, d = 1.0, 1.0, 0.0  # Lentz's method
    for term in range(_MAX_TERMS):
        m = term // 2
        if term == 0:
            numerator = 1.0
        elif term % 2 == 0:
            numerator = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            numerator = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / _nonzero(1 + numerator * d)
        c = _nonzero(1 + numerator / c)
        value *= c * d
        if abs(1 - c * d) < _PRECISION:
            break
    return front * (value - 1)


def _nonzero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
