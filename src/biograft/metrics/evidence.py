"""Evidence for a claim: bootstrap over seeds and documents, Holm's correction, verdicts.

An experiment compares two arms on the same items, with several seeds of pre-training and, of each,
several of fine-tuning. Chance enters by the choice of seeds and by that of documents, so both are
resampled. One seed says nothing about other seeds: the interval then holds for that seed only.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import erfc, sqrt

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError
from biograft.metrics.significance import LEVEL, N_RESAMPLES, group_sums, quantile_interval

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
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class EffectSize:
    """A measured effect: above 0 where it is as claimed; its 95 % interval and two-sided p."""

    effect: float
    low: float
    high: float
    p: float

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

    >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
    {'a': 0.03, 'b': 0.06, 'c': 0.06}
    """
    corrected, largest = {}, 0.0
    for rank, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[name]))
        corrected[name] = largest
    return {name: corrected[name] for name in p_values}


Cube = npt.NDArray[np.float64]


def crossed_bootstrap(
    a: Cube,
    b: Cube,
    groups: Sequence[Hashable] | None = None,
    *,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> EffectSize:
    """Compare the means of two arms over the same items with the same seeds.

    ``a`` and ``b`` are (pre-training seeds, fine-tuning seeds, items); ``groups`` are the documents
    of the items, which are resampled together (``crossed_ratio_bootstrap``).
    """
    if a.shape != b.shape or a.ndim != 3 or not a.size:
        raise ConfigError(f"paired test: expected arrays of one shape, found {a.shape}, {b.shape}")
    arms = (_document_sums(arm, groups) for arm in (a, b))
    return crossed_ratio_bootstrap(*arms, n_resamples=n_resamples, seed=seed)


def crossed_ratio_bootstrap(
    a: Cube, b: Cube, *, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> EffectSize:
    """Compare a ratio of sums over documents, such as F1 or a mean, of two arms.

    ``a`` and ``b`` are (pre-training seeds, fine-tuning seeds, documents, 2): the numerator and the
    denominator of each document. Every resample draws documents, seeds of pre-training, and of each
    of these seeds of fine-tuning. A mean over n seeds varies too little by n - 1 in n when n values
    are drawn again, so the deviations of seeds from their mean are enlarged first.
    """
    if a.shape != b.shape or a.ndim != 4 or not a.size:
        raise ConfigError(f"paired test: expected arrays of one shape, found {a.shape}, {b.shape}")
    cells = _ratios(a.sum(2)) - _ratios(b.sum(2))  # (pre, fine)
    more = seed_enlargement(cells)
    rng = np.random.default_rng(seed)
    means = np.array([_resample(a, b, more, rng) for _ in range(n_resamples)])
    interval = quantile_interval(means, LEVEL)
    observed = float(cells.mean())
    return EffectSize(observed, interval.low, interval.high, _p_of(observed, means))


def _p_of(observed: float, means: npt.NDArray[np.float64]) -> float:
    """Return the two-sided p of resampled means.

    Where none has the other sign, n resamples cannot tell p values below 2 / (n + 1); it is then
    that of a normal distribution with their deviation, so that many tests can be corrected.
    """
    side = min(int((means <= 0).sum()), int((means >= 0).sum()))
    p = min(1.0, 2 * (side + 1) / (len(means) + 1))
    deviation = float(means.std())
    if side or not deviation:
        return p
    return min(p, max(erfc(abs(observed) / deviation / sqrt(2)), _SMALLEST_P))


def seed_enlargement(cells: Cube) -> Cube:
    """Return what is added to the differences (pre-training seeds, fine-tuning seeds).

    It enlarges their deviations, of each kind, by the root of n / (n - 1).
    """
    n_pre, n_fine = cells.shape
    of_pre = cells.mean(1, keepdims=True)
    more_pre = (sqrt(n_pre / (n_pre - 1)) - 1 if n_pre > 1 else 0.0) * (of_pre - of_pre.mean())
    more_fine = (sqrt(n_fine / (n_fine - 1)) - 1 if n_fine > 1 else 0.0) * (cells - of_pre)
    return np.asarray(more_pre + more_fine)


def _document_sums(items: Cube, groups: Sequence[Hashable] | None) -> Cube:
    """Return the sum and the number of items of each document, for each pair of seeds."""
    n_pre, n_fine, n_items = items.shape
    rows = [np.stack(group_sums(row, groups), axis=-1) for row in items.reshape(-1, n_items)]
    return np.stack(rows).reshape(n_pre, n_fine, -1, 2)


def _ratios(sums: Cube) -> Cube:
    """Divide numerators by denominators, (..., 2); nothing by nothing is 0."""
    return np.asarray(sums[..., 0] / np.where(sums[..., 1] == 0, 1, sums[..., 1]))


def _resample(a: Cube, b: Cube, more: Cube, rng: np.random.Generator) -> float:
    """Return the mean difference of one resample."""
    n_pre, n_fine, n_documents, _ = a.shape
    pre = np.asarray(rng.integers(0, n_pre, n_pre))
    fine = rng.integers(0, n_fine, (n_pre, n_fine))
    documents = rng.integers(0, n_documents, n_documents)
    weights = np.bincount(documents, minlength=n_documents)
    x, y = (_ratios(np.einsum("pfdk,d->pfk", arm, weights)) for arm in (a, b))
    return float((x - y + more)[pre[:, None], fine].mean())
