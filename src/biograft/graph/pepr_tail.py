"""What a walk does after the steps that are computed: settled, but for a fitted correction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from biograft.graph.adjacency import Floats, Ints, Longs
from biograft.graph.pepr_steps import N_STEPS

_FITTED_FROM = 2
"""The first step is the same for all neighbours of an entity."""
_TRUSTED = 0.99
"""Part of the pilots' neighbours whose error lies within the margin."""
_LEAST = 0.05
_SINGLE = 2e-7
"""Relative error of sums in single precision, seen against double."""

Settled = tuple[Floats, Floats]


@dataclass(frozen=True, slots=True)
class Tail:
    """A linear correction of the walk's rest, and how many times its own size it may be wrong.

    The differences between an entity's neighbours, which decide their order, and their mean,
    which does not, are corrected apart.
    """

    settled: Settled
    damping: float
    slopes: Floats
    mean_slopes: Floats
    doubt: float
    n_pilots: int

    def estimate(self, steps: Floats, near: Ints, ends: Longs) -> tuple[Floats, Floats]:
        """Give the PageRank at the neighbours and its margins, leaving out what all share."""
        known, apart = split_walk(steps, near, self.settled, self.damping)
        means = _means(apart, ends)
        correction = (apart - means) @ self.slopes
        margins = self.doubt * _size(correction, ends) + _SINGLE * known
        return known + correction + means @ self.mean_slopes, margins


def split_walk(
    steps: Floats, near: Ints, settled: Settled, damping: float
) -> tuple[Floats, Floats]:
    """Add up the known steps and a settled rest; give how far steps were from settled too."""
    c = 1 - damping
    powers = damping * c ** np.arange(1, N_STEPS + 1)
    even, odd = settled[0][near], settled[1][near]
    rest = damping * c ** (N_STEPS + 1) / (1 - c * c) * (even + c * odd)
    by_step = [even if step % 2 == 0 else odd for step in range(_FITTED_FROM, N_STEPS + 1)]
    apart = steps[:, _FITTED_FROM - 1 :] - np.stack(by_step, axis=1)
    return steps @ powers + rest, apart


def fit_tail(
    steps: Floats, walk: Floats, near: Ints, ends: Longs, settled: Settled, damping: float
) -> Tail:
    """Fit the correction to walks that are known exactly, each pilot counting alike."""
    n = N_STEPS - _FITTED_FROM + 1
    if not len(ends):
        return Tail(settled, damping, np.zeros(n), np.zeros(n), 1.0, 0)
    known, apart = split_walk(steps, near, settled, damping)
    missing = (walk - known)[:, None]
    means, missing_means = _means(apart, ends), _means(missing, ends)
    counts = np.diff(ends, prepend=0)
    weight = np.sqrt(np.repeat(counts, counts))[:, None]  # what is shared out is 1 / neighbours
    slopes = _fit(weight * (apart - means), weight * (missing - missing_means))
    firsts = ends - counts
    mean_slopes = _fit(
        counts[:, None] * means[firsts],
        counts[:, None] * missing_means[firsts],
    )
    correction = (apart - means) @ slopes
    error = np.abs((missing - missing_means)[:, 0] - correction)
    size = np.maximum(_size(correction, ends), np.finfo(float).tiny)
    beyond = np.maximum(error - _SINGLE * known, 0) / size
    doubt = max(float(np.quantile(beyond, _TRUSTED)), _LEAST)
    return Tail(settled, damping, slopes, mean_slopes, doubt, len(ends))


def _fit(x: Floats, y: Floats) -> Floats:
    scale = np.sqrt((x * x).sum(axis=0))
    scale[scale == 0] = 1
    slopes: Floats = np.linalg.lstsq(x / scale, y[:, 0], rcond=1e-8)[0] / scale
    return slopes


def _means(values: Floats, ends: Longs) -> Floats:
    """Give each entity's mean for each of its neighbours."""
    counts = np.diff(ends, prepend=0)
    means = np.add.reduceat(values, ends - counts, axis=0) / counts[:, None]
    return np.repeat(means, counts, axis=0)


def _size(correction: Floats, ends: Longs) -> Floats:
    """Say how large corrections are, each beside the usual one of its entity."""
    usual = np.sqrt(_means((correction * correction)[:, None], ends)[:, 0])
    size: Floats = np.abs(correction) + usual
    return size
