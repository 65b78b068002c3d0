"""Losses on a mined batch, from the cosines of its rows; parameters default to published ones.

Each is a small part that is called with the cosines (rows, rows) and what was mined; sums of
exponentials are taken in logarithms, and a row that lacks pairs contributes 0, never NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import softplus

from biograft.errors import ConfigError
from biograft.objectives.synonym_alignment.distances import unit_distances
from biograft.objectives.synonym_alignment.mining import Mined


class AlignmentLoss(Protocol):
    """What a loss offers."""

    def __call__(self, cosine: Tensor, mined: Mined) -> Tensor:
        """Give the loss of a batch, a scalar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiSimilarity:
    """Mean over all rows of 1/a ln(1 + sum_P exp(-a (s - e))) + 1/b ln(1 + sum_N exp(b (s - e))).

    P and N are sets: a pair counts once, in however many triplets it stands. ``alpha`` sharpens
    the positives, ``beta`` the negatives, ``base`` is e.
    """

    alpha: float = 1.0
    beta: float = 60.0
    base: float = 0.5

    def __post_init__(self) -> None:
        _check_positive(self, "alpha", "beta")

    def __call__(self, cosine: Tensor, mined: Mined) -> Tensor:
        """Give the loss of a batch, a scalar."""
        near = _log_sum(-self.alpha * (cosine - self.base), mined.kept_positives)
        far = _log_sum(self.beta * (cosine - self.base), mined.kept_negatives)
        return (softplus(near) / self.alpha + softplus(far) / self.beta).mean()


@dataclass(frozen=True, slots=True, kw_only=True)
class InfoNCE:
    """Mean over positive pairs of -ln(e^(s_p/t) / (e^(s_p/t) + sum_N e^(s_n/t))).

    With a miner every triplet brings its pairs anew, as published: a negative in m triplets of
    an anchor counts m times in the sum, a positive in m triplets m times in the mean.
    """

    temperature: float = 0.07

    def __post_init__(self) -> None:
        _check_positive(self, "temperature")

    def __call__(self, cosine: Tensor, mined: Mined) -> Tensor:
        """Give the loss of a batch, a scalar."""
        scaled = cosine / self.temperature
        repeats = mined.negative_counts.clamp_min(1).to(cosine.dtype).log()
        negatives = _log_sum(scaled + repeats, mined.kept_negatives)  # (rows,)
        losses = softplus(negatives[:, None] - scaled)
        weights = mined.positive_counts.to(cosine.dtype)
        return (losses * weights).sum() / weights.sum().clamp_min(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TripletMargin:
    """Mean of max(0, d_ap - d_an + margin) over the triplets where it is not 0.

    The sum is linear in the distances, so how often each pair occurs in such a triplet is enough.
    """

    margin: float = 0.05

    def __post_init__(self) -> None:
        _check_positive(self, "margin")

    def __call__(self, cosine: Tensor, mined: Mined) -> Tensor:
        """Give the loss of a batch, a scalar."""
        positive, negative = mined.counts_below(self.margin)
        distances = unit_distances(cosine)
        n_triplets = positive.sum().to(cosine.dtype)  # an integer would turn to float32 below
        signed = (positive - negative).to(cosine.dtype)
        total = (distances * signed).sum() + self.margin * n_triplets
        return total / n_triplets.clamp_min(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Circle:
    """Mean over rows of softplus(logsumexp_P + logsumexp_N) of pairs that set their own pace.

    A pair's weight is how far its cosine is from 1 + m (positives) or -m (negatives), without
    gradient. Rows that lack positives or negatives, or whose loss is 0, do not count.
    """

    m: float = 0.4
    gamma: float = 80.0

    def __post_init__(self) -> None:
        _check_positive(self, "m", "gamma")

    def __call__(self, cosine: Tensor, mined: Mined) -> Tensor:
        """Give the loss of a batch, a scalar."""
        fixed = cosine.detach()
        near = -self.gamma * (1 + self.m - fixed).relu() * (cosine - (1 - self.m))
        far = self.gamma * (fixed + self.m).relu() * (cosine - self.m)
        exponent = _log_sum(near, mined.kept_positives) + _log_sum(far, mined.kept_negatives)
        whole = mined.kept_positives.any(1) & mined.kept_negatives.any(1)
        losses = softplus(exponent) * whole
        return losses.sum() / (losses.detach() > 0).sum().clamp_min(1)


def _log_sum(exponents: Tensor, kept: Tensor) -> Tensor:
    """Give ln(sum exp) of the kept entries of each row; far below zero where there is none.

    Not -inf, whose gradient is NaN; a part of the lowest number, so that two can be added.
    """
    lowest = torch.finfo(exponents.dtype).min / 4
    return exponents.masked_fill(~kept, lowest).logsumexp(1)


def _check_positive(loss: object, *names: str) -> None:
    for name in names:
        value = getattr(loss, name)
        if not 0 < value < float("inf"):
            raise ConfigError(f"{name}: expected a number above 0, found {value}")
