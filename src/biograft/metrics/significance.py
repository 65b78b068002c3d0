"""Bootstrap intervals and significance tests: randomisation, McNemar, t-tests, seeds and documents.

Queries of one document are not independent, so whole documents are resampled (or exchanged). The
same seed gives the same result.

An experiment compares two arms on the same items, with several seeds of pre-training and, of each,
several of fine-tuning. Chance enters by the choice of seeds and by that of documents, so both are
resampled. One seed says nothing about other seeds: the interval then holds for that seed only.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import atan2, erfc, exp, lgamma, log, pi, sqrt
from statistics import fmean, variance

import numpy as np
import numpy.typing as npt

from biograft.arrays import Flags
from biograft.errors import ConfigError
from biograft.metrics.linking import Values
from biograft.metrics.precision_recall import Counts, percent

N_RESAMPLES = 1000
LEVEL = 0.95
_BATCH_VALUES = 4_000_000
"""Maximum number of values held in memory while resampling."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval."""

    low: float
    """Lower bound."""
    high: float
    """Upper bound."""

    def to_json(self) -> list[float]:
        """Return both bounds in percent."""
        return [percent(self.low), percent(self.high)]


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two runs, with its interval and p-value."""

    difference: float
    """Mean of the second run minus that of the first."""
    interval: Interval
    """Bootstrap interval of the difference."""
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
    """Compute the percentile interval of a mean by resampling groups (or values).

    Args:
        values: Value of each query.
        groups: Document of each value; None: each value is one.
        n_resamples: Number of resamples.
        level: Level of the interval.
        seed: Seed of the resamples.
    """
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

    Args:
        counts: Counts of each document.
        n_resamples: Number of resamples.
        level: Level of the interval.
        seed: Seed of the resamples.
    """
    sums = _resampled_sums(_count_table(counts).T, n_resamples, seed)
    metrics = _count_metrics(sums.T)
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

    Args:
        a: Counts of each document in one run.
        b: Those in the other.
        metric: ``f1``, ``precision`` or ``recall``.
        n_resamples: Number of resamples.
        level: Level of the interval.
        seed: Seed of the resamples.
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
    swapped = rng.integers(0, 2, size=(n_resamples, n)).astype(np.float64)
    total, gap = tables.sum(axis=(0, 1)), tables[1] - tables[0]
    first = tables[0].sum(axis=0) + swapped @ gap
    extreme = np.abs(difference(first, total - first)) >= abs(observed) - 1e-12
    randomisation = (int(extreme.sum()) + 1) / (n_resamples + 1)
    bootstrap = Difference(observed, quantile_interval(resampled, level), _two_sided_p(resampled))
    return bootstrap, randomisation


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

    Args:
        a: Value of each query in one run.
        b: Those in the other.
        groups: Document of each value; None: each value is one.
        n_resamples: Number of resamples.
        level: Level of the interval.
        seed: Seed of the resamples.
    """
    differences = _paired(a, b)
    means = _resampled_means(differences, groups, n_resamples, seed)
    observed = float(differences.mean()) if len(differences) else 0.0
    return Difference(observed, quantile_interval(means, level), _two_sided_p(means))


def _two_sided_p(values: Values) -> float:
    """Return the p value of resampled differences; one added resample keeps it above 0."""
    side = min(int((values <= 0).sum()), int((values >= 0).sum()))
    return min(1.0, 2 * (side + 1) / (len(values) + 1))


def approximate_randomisation(
    a: Values,
    b: Values,
    groups: Sequence[Hashable] | None = None,
    *,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> float:
    """Compute the two-sided p of mean(a) = mean(b), exchanging the runs by groups at random.

    Args:
        a: Value of each query in one run.
        b: Those in the other.
        groups: Document of each value; None: each value is one.
        n_resamples: Number of resamples.
        seed: Seed of the resamples.
    """
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

    Args:
        a: Whether each query is right in one run.
        b: The same in the other.
    """
    if len(a) != len(b):
        raise ConfigError(f"paired test: {len(a)} values against {len(b)}")
    only_a, only_b = int((a & ~b).sum()), int((~a & b).sum())
    n, smaller = only_a + only_b, min(only_a, only_b)
    total = lgamma(n + 1) - n * log(2)  # logarithms, since the coefficients may overflow
    splits = (exp(total - lgamma(k + 1) - lgamma(n - k + 1)) for k in range(smaller + 1))
    return min(1.0, 2 * sum(splits))


def _paired(a: Values, b: Values) -> Values:
    if len(a) != len(b):
        raise ConfigError(f"paired test: {len(a)} values against {len(b)}")
    return np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)


def _resampled_means(
    values: Values, groups: Sequence[Hashable] | None, n_resamples: int, seed: int
) -> Values:
    """Resample groups with replacement and return the mean of each resample."""
    sums, sizes = _resampled_sums(np.stack(group_sums(values, groups)), n_resamples, seed)
    return _ratio(sums, sizes)


def _resampled_sums(columns: Values, n_resamples: int, seed: int) -> Values:
    """Resample the entries of columns together; return the sums, (columns, resamples)."""
    _check_resamples(n_resamples)
    n = columns.shape[1]
    rng = np.random.default_rng(seed)
    sums = [np.zeros((len(columns), 0))]
    for size in _batches(n_resamples, n):
        sampled = rng.integers(0, max(n, 1), size=(size, n))
        sums.append(np.stack([column[sampled].sum(axis=1) for column in columns]))
    return np.concatenate(sums, axis=1)


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
    """Sum and count the values of each group; without groups each value is a group.

    Args:
        values: The values.
        groups: Group of each value; None: each value is one.
    """
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
    """Return the quantiles of resampled means that hold this part of them between.

    Args:
        means: Resampled means.
        level: Fraction of the means inside.
    """
    if not 0 < level < 1:
        raise ConfigError(f"level: expected a number between 0 and 1, found {level}")
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


@dataclass(frozen=True, slots=True)
class TTest:
    """A difference of means with its t statistic and p-value."""

    difference: float
    """Difference of the means."""
    t: float
    """The t statistic."""
    degrees: float
    """Degrees of freedom."""
    p: float
    """Two-sided p-value."""


def one_sample_t(values: Sequence[float], mean: float) -> TTest:
    """Compare the mean of some runs with a published result.

    Args:
        values: Result of each run.
        mean: The published result.
    """
    _check(values)
    return _test(fmean(values) - mean, variance(values) / len(values), len(values) - 1)


def paired_t(a: Sequence[float], b: Sequence[float]) -> TTest:
    """Compare two systems by paired runs, such as those of one seed.

    Args:
        a: Result of each run of one system.
        b: Those of the other, in the same order.
    """
    if len(a) != len(b):
        raise ConfigError(f"paired test: {len(a)} values against {len(b)}")
    return one_sample_t([x - y for x, y in zip(a, b, strict=True)], 0.0)


def welch_t(a: Sequence[float], b: Sequence[float]) -> TTest:
    """Compare two systems by independent runs, with unequal variances (Welch).

    Args:
        a: Result of each run of one system.
        b: Those of the other.
    """
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
    p = _sine_integral(degrees, atan2(sqrt(degrees), abs(t))) / _sine_integral(degrees, pi / 2)
    return TTest(difference, t, degrees, p)


def _sine_integral(degrees: float, end: float) -> float:
    """Integrate the density of t by its angle, ``sin(x) ** (degrees - 1)``, from 0 to ``end``.

    Gauss-Legendre quadrature in the fourth root of x, in which the density is smooth at 0.
    """
    nodes, weights = np.polynomial.legendre.leggauss(200)
    roots = (nodes + 1) / 2
    return float(weights @ (roots**3 * np.sin(end * roots**4) ** (degrees - 1))) * end


# ---- evidence

ALPHA = 1 - LEVEL
SAME_SIGN_P = 0.2
"""Below this p value a difference that is not significant is still reported by its sign."""
_SMALLEST_P = 1e-12
_Z_HALF_WIDTH, _Z_POWER = 1.959964, 0.841621
"""Normal quantiles of the 95 % interval, and of a power of 80 %."""


class Verdict(StrEnum):
    """Verdict of an experiment about a claim."""

    REPRODUCED = "reproduced"
    SAME_SIGN = "same sign"
    NO_EFFECT = "no effect seen"
    OPPOSITE = "opposite"
    NOT_LEARNED = "not learned"
    """The trained objective is at chance on held-out text, so that no difference can tell."""
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class EffectSize:
    """A measured effect: above 0 where it is as claimed; its 95 % interval and two-sided p."""

    effect: float
    """The effect, in the unit of the metric."""
    low: float
    """Lower bound of the interval."""
    high: float
    """Upper bound of the interval."""
    p: float
    """Two-sided p-value."""

    @property
    def standard_error(self) -> float:
        """The standard error, from the width of the interval."""
        return (self.high - self.low) / (2 * _Z_HALF_WIDTH)

    @property
    def detectable(self) -> float:
        """The smallest effect that would have been significant in 80 % of repetitions."""
        return (_Z_HALF_WIDTH + _Z_POWER) * self.standard_error


def judge_evidence(evidence: EffectSize, corrected_p: float) -> Verdict:
    """Return the verdict by rule.

    *Reproduced* and *opposite* are significant at 5 % after correction. *Same sign* is the claimed
    sign with p below 0.2 before correction. All else is *no effect seen*.

    Args:
        evidence: The measured effect.
        corrected_p: Its p after correction for several tests.
    """
    if corrected_p < ALPHA:
        return Verdict.REPRODUCED if evidence.effect > 0 else Verdict.OPPOSITE
    if evidence.effect > 0 and evidence.p < SAME_SIGN_P:
        return Verdict.SAME_SIGN
    return Verdict.NO_EFFECT


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Correct the p values of several tests so that errors of the family stay below a level (Holm).

    The smallest is multiplied by the number of tests, the next by one less, and so on; a corrected
    value is never below an earlier one.

    Args:
        p_values: Name of each test and its p.

    >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
    {'a': 0.03, 'b': 0.06, 'c': 0.06}
    """
    corrected, largest = {}, 0.0
    for rank, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[name]))
        corrected[name] = largest
    return {name: corrected[name] for name in p_values}


def crossed_bootstrap(
    a: Values,
    b: Values,
    groups: Sequence[Hashable] | None = None,
    *,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> EffectSize:
    """Compare the means of two arms over the same items with the same seeds.

    ``a`` and ``b`` are (pre-training seeds, fine-tuning seeds, items); ``groups`` are the documents
    of the items, which are resampled together (``crossed_ratio_bootstrap``).

    Args:
        a: Values of one arm, (pre-training seeds, fine-tuning seeds, items).
        b: Those of the other.
        groups: Document of each item; None: each item is one.
        n_resamples: Number of resamples.
        seed: Seed of the resamples.
    """
    if a.shape != b.shape or a.ndim != 3 or not a.size:
        raise ConfigError(f"paired test: expected arrays of one shape, found {a.shape}, {b.shape}")
    arms = []
    for arm in (a, b):  # sum and number of items of each document, for each pair of seeds
        rows = [np.stack(group_sums(row, groups), axis=-1) for row in arm.reshape(-1, arm.shape[2])]
        arms.append(np.stack(rows).reshape(*arm.shape[:2], -1, 2))
    return crossed_ratio_bootstrap(*arms, n_resamples=n_resamples, seed=seed)


def crossed_ratio_bootstrap(
    a: Values, b: Values, *, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> EffectSize:
    """Compare a ratio of sums over documents, such as F1 or a mean, of two arms.

    ``a`` and ``b`` are (pre-training seeds, fine-tuning seeds, documents, 2): the numerator and the
    denominator of each document. Every resample draws documents, seeds of pre-training, and of each
    of these seeds of fine-tuning. A mean over n seeds varies too little by n - 1 in n when n values
    are drawn again, so the deviations of seeds from their mean are enlarged first.

    Args:
        a: Sums of one arm, (pre-training seeds, fine-tuning seeds, documents, 2).
        b: Those of the other.
        n_resamples: Number of resamples.
        seed: Seed of the resamples.
    """
    if a.shape != b.shape or a.ndim != 4 or not a.size:
        raise ConfigError(f"paired test: expected arrays of one shape, found {a.shape}, {b.shape}")
    cells = _ratios(a.sum(2)) - _ratios(b.sum(2))  # (pre, fine)
    more = seed_enlargement(cells)
    rng = np.random.default_rng(seed)
    means = np.array([_resample(a, b, more, rng) for _ in range(n_resamples)])
    interval = quantile_interval(means, LEVEL)
    observed, deviation = float(cells.mean()), float(means.std())
    p = _two_sided_p(means)
    if deviation and p <= 2 / (len(means) + 1):
        # no mean has the other sign, so resamples cannot tell smaller p values: it is that of a
        # normal distribution with their deviation, so that many tests can be corrected
        p = min(p, max(erfc(abs(observed) / deviation / sqrt(2)), _SMALLEST_P))
    return EffectSize(observed, interval.low, interval.high, p)


def seed_enlargement(cells: Values) -> Values:
    """Return what is added to the differences (pre-training seeds, fine-tuning seeds).

    It enlarges their deviations, of each kind, by the root of n / (n - 1).

    Args:
        cells: Differences, (pre-training seeds, fine-tuning seeds).
    """
    n_pre, n_fine = cells.shape
    of_pre = cells.mean(1, keepdims=True)
    more_pre = (sqrt(n_pre / (n_pre - 1)) - 1 if n_pre > 1 else 0.0) * (of_pre - of_pre.mean())
    more_fine = (sqrt(n_fine / (n_fine - 1)) - 1 if n_fine > 1 else 0.0) * (cells - of_pre)
    return np.asarray(more_pre + more_fine)


def _ratios(sums: Values) -> Values:
    """Divide numerators by denominators, (..., 2); nothing by nothing is 0."""
    return np.asarray(sums[..., 0] / np.where(sums[..., 1] == 0, 1, sums[..., 1]))


def _resample(a: Values, b: Values, more: Values, rng: np.random.Generator) -> float:
    """Return the mean difference of one resample."""
    n_pre, n_fine, n_documents, _ = a.shape
    pre = np.asarray(rng.integers(0, n_pre, n_pre))
    fine = rng.integers(0, n_fine, (n_pre, n_fine))
    documents = rng.integers(0, n_documents, n_documents)
    weights = np.bincount(documents, minlength=n_documents)
    x, y = (_ratios(np.einsum("pfdk,d->pfk", arm, weights)) for arm in (a, b))
    return float((x - y + more)[pre[:, None], fine].mean())
