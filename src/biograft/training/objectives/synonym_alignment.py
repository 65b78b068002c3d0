"""Synonym alignment of SapBERT (Liu et al. 2021): names of one concept near, others apart.

A metric loss (multi-similarity as published, InfoNCE, triplet margin or circle) over the pairs
that a triplet margin miner keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.functional import normalize, softplus

from biograft.config import from_mapping
from biograft.errors import BiograftError, ConfigError
from biograft.training.objectives.base import Loss, Objective, to_float32
from biograft.training.objectives.configs import LOSSES, SynonymAlignmentConfig
from biograft.training.objectives.examples import Setting


def cosines(embeddings: Tensor) -> Tensor:
    """Compute the cosine of every pair of rows, in at least float32.

    Half precision cannot distinguish similar names, and its sums overflow.
    """
    embeddings = to_float32(embeddings)
    with torch.autocast(embeddings.device.type, enabled=False):
        rows = normalize(embeddings, dim=1)  # (rows, width)
        return rows @ rows.T  # (rows, rows)


def unit_distances(cosine: Tensor) -> Tensor:
    """Compute the Euclidean distance of unit rows from their cosine: sqrt(2 - 2 cos).

    The floor keeps the gradient of the root finite where two names have the same vector.
    """
    return (2 - 2 * cosine).clamp_min(torch.finfo(cosine.dtype).eps ** 2).sqrt()


@dataclass(frozen=True, slots=True)
class Mined:
    """The mined pairs of a batch; rows are anchors, columns the other end of a pair."""

    distances: Tensor  # (rows, rows), without gradient
    positives: Tensor  # (rows, rows) bool: another row of the same concept
    negatives: Tensor  # (rows, rows) bool: a row of another concept
    low: float
    """A negative is farther than the positive by more than this ..."""
    high: float
    """... and by at most this."""
    positive_counts: Tensor
    """The number of kept triplets of an anchor with each positive (1 without a miner)."""
    negative_counts: Tensor
    """The same for each negative."""

    @property
    def kept_positives(self) -> Tensor:
        """The positives in at least one kept triplet of their anchor."""
        return self.positive_counts > 0

    @property
    def kept_negatives(self) -> Tensor:
        """The negatives in at least one kept triplet of their anchor."""
        return self.negative_counts > 0

    @property
    def n_triplets(self) -> int:
        """The number of kept triplets."""
        counts = self.positive_counts
        if self.high == torch.inf:
            counts = self.positives.sum(1) * self.negatives.sum(1)
        return int(counts.sum())

    def counts_below(self, margin: float) -> tuple[Tensor, Tensor]:
        """Count the kept triplets whose negative is not farther than the positive by ``margin``."""
        parts = (self.distances, self.positives, self.negatives)
        return _between(parts, self.low, min(margin, self.high), strict=margin <= self.high)


class TripletMarginMiner:
    """Keeps (a, p, n) when d(a, n) - d(a, p) <= margin, d between rows of length one.

    Args:
        margin: The margin.
        kind: Triplets that are kept: ``all`` within the margin, ``hard``, ``semihard``, or ``none``
            to keep every pair.
    """

    def __init__(self, margin: float = 0.2, kind: str = "all") -> None:
        self.margin, self.kind = margin, kind

    @torch.no_grad()
    def __call__(self, cosine: Tensor, labels: Tensor) -> Mined:
        """Mine a batch.

        Args:
            cosine: Cosines of the rows: (rows, rows).
            labels: Concept of each row.
        """
        same = labels[:, None] == labels[None, :]
        positives = same & ~torch.eye(len(labels), dtype=torch.bool, device=labels.device)
        distances = unit_distances(cosine.detach())
        low = 0.0 if self.kind == "semihard" else -torch.inf
        high = {"hard": 0.0, "none": torch.inf}.get(self.kind, self.margin)
        if self.kind == "none":  # pairs are not tied to triplets, so each counts once
            counts = (positives.long(), (~same).long())
        else:
            counts = _between((distances, positives, ~same), low, high, strict=False)
        return Mined(distances, positives, ~same, low, high, *counts)


Parts = tuple[Tensor, Tensor, Tensor]
"""Distances, positives, negatives."""


def _between(parts: Parts, low: float, high: float, *, strict: bool) -> tuple[Tensor, Tensor]:
    """Count for each pair the triplets with low < d(a, n) - d(a, p) <= high (< if strict)."""
    positive, negative = _count(*parts, high, strict=strict)
    if low > -torch.inf:
        below = _count(*parts, low, strict=False)
        positive, negative = positive - below[0], negative - below[1]
    return positive.clamp_min(0), negative.clamp_min(0)


def _count(
    distances: Tensor, positives: Tensor, negatives: Tensor, threshold: float, *, strict: bool
) -> tuple[Tensor, Tensor]:
    """Count for each pair the triplets with d(a, n) <= d(a, p) + threshold (< if strict).

    Both counts compare the same two numbers, so that they agree to the last bit on what is kept.
    """
    if threshold == torch.inf:
        return (
            positives * negatives.sum(1, keepdim=True),
            negatives * positives.sum(1, keepdim=True),
        )
    reach = (distances + threshold).masked_fill(~positives, -torch.inf)
    negative = distances.masked_fill(~negatives, torch.inf)
    near = torch.searchsorted(negative.sort(1).values, reach, right=not strict)
    short = torch.searchsorted(reach.sort(1).values, negative, right=strict)
    return near, len(distances) - short


class AlignmentLoss(Protocol):
    """A metric loss over mined pairs."""

    def __call__(self, cosine: Tensor, mined: Mined) -> Tensor:
        """Compute the loss of a batch, a scalar.

        Args:
            cosine: Cosines of the rows: (rows, rows).
            mined: Pairs and triplets that the miner keeps.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiSimilarity:
    """Mean over all rows of 1/a ln(1 + sum_P exp(-a (s - e))) + 1/b ln(1 + sum_N exp(b (s - e))).

    P and N are sets: a pair counts once, however many triplets contain it. ``alpha`` sharpens the
    positives, ``beta`` the negatives, ``base`` is e.
    """

    alpha: float = 1.0
    beta: float = 60.0
    base: float = 0.5

    def __post_init__(self) -> None:
        _check_positive(self, "alpha", "beta")

    def __call__(self, cosine: Tensor, mined: Mined) -> Tensor:
        """Compute the loss of a batch, a scalar."""
        near = _log_sum(-self.alpha * (cosine - self.base), mined.kept_positives)
        far = _log_sum(self.beta * (cosine - self.base), mined.kept_negatives)
        return (softplus(near) / self.alpha + softplus(far) / self.beta).mean()


@dataclass(frozen=True, slots=True, kw_only=True)
class InfoNCE:
    """Mean over positive pairs of -ln(e^(s_p/t) / (e^(s_p/t) + sum_N e^(s_n/t))).

    With a miner every triplet contributes its pairs, as published: a negative in m triplets of an
    anchor counts m times in the sum, a positive in m triplets m times in the mean.
    """

    temperature: float = 0.07

    def __post_init__(self) -> None:
        _check_positive(self, "temperature")

    def __call__(self, cosine: Tensor, mined: Mined) -> Tensor:
        """Compute the loss of a batch, a scalar."""
        scaled = cosine / self.temperature
        repeats = mined.negative_counts.clamp_min(1).to(cosine.dtype).log()
        negatives = _log_sum(scaled + repeats, mined.kept_negatives)  # (rows,)
        losses = softplus(negatives[:, None] - scaled)
        weights = mined.positive_counts.to(cosine.dtype)
        return (losses * weights).sum() / weights.sum().clamp_min(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TripletMargin:
    """Mean of max(0, d_ap - d_an + margin) over the triplets where it is not 0.

    The sum is linear in the distances, so the number of such triplets of each pair is enough.
    """

    margin: float = 0.05

    def __post_init__(self) -> None:
        _check_positive(self, "margin")

    def __call__(self, cosine: Tensor, mined: Mined) -> Tensor:
        """Compute the loss of a batch, a scalar."""
        positive, negative = mined.counts_below(self.margin)
        distances = unit_distances(cosine)
        n_triplets = positive.sum().to(cosine.dtype)  # an integer would become float32 below
        signed = (positive - negative).to(cosine.dtype)
        total = (distances * signed).sum() + self.margin * n_triplets
        return total / n_triplets.clamp_min(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Circle:
    """Mean over rows of softplus(logsumexp_P + logsumexp_N) of pairs weighted by themselves.

    A pair's weight is the distance of its cosine from 1 + m (positives) or -m (negatives), without
    gradient. Rows without positives or negatives, or with a loss of 0, do not count.
    """

    m: float = 0.4
    gamma: float = 80.0

    def __post_init__(self) -> None:
        _check_positive(self, "m", "gamma")

    def __call__(self, cosine: Tensor, mined: Mined) -> Tensor:
        """Compute the loss of a batch, a scalar."""
        fixed = cosine.detach()
        near = -self.gamma * (1 + self.m - fixed).relu() * (cosine - (1 - self.m))
        far = self.gamma * (fixed + self.m).relu() * (cosine - self.m)
        exponent = _log_sum(near, mined.kept_positives) + _log_sum(far, mined.kept_negatives)
        whole = mined.kept_positives.any(1) & mined.kept_negatives.any(1)
        losses = softplus(exponent) * whole
        return losses.sum() / (losses.detach() > 0).sum().clamp_min(1)


def _log_sum(exponents: Tensor, mask: Tensor) -> Tensor:
    """Compute ln(sum exp) of the kept entries of each row; far below zero where there is none.

    Not -inf, whose gradient is NaN; a quarter of the lowest number, so that two can be added.
    """
    lowest = torch.finfo(exponents.dtype).min / 4
    return exponents.masked_fill(~mask, lowest).logsumexp(1)


def _check_positive(loss: object, *names: str) -> None:
    for name in names:
        value = getattr(loss, name)
        if not 0 < value < float("inf"):
            raise ConfigError(f"{name}: expected a number above 0, found {value}")


class PairObjective(Objective):
    """Base of objectives of name pairs.

    ``states`` of the loss are the vectors (2 * pairs, width) of names, of any float type and
    length: those of the first names of all pairs, then those of the second. ``batch["labels"]`` has
    the concept of each, a row of the knowledge base, and ``batch[name]`` the vectors (pairs, width)
    of the texts that ``texts`` adds under a name. In training they are those of all processes.
    """

    compares = True
    miner = TripletMarginMiner(kind="none")
    """Chooses the pairs that evaluations count as mined; by default all."""

    def count(self, batch: Any) -> int:
        """Count the pairs."""
        return len(batch)

    def report(self, states: Tensor, batch: Mapping[str, Tensor]) -> Mapping[str, Any]:
        """Return the histograms of cosines, before and after mining."""
        return {"cosines": cosine_histogram(states, batch["labels"], self.miner)}


class SynonymAlignment(PairObjective):
    """Pull the names of a concept together, and apart from the other names of the batch."""

    name = "synonym_alignment"

    def __init__(self, config: SynonymAlignmentConfig, setting: Setting | None = None) -> None:
        self.config = config
        self.miner = TripletMarginMiner(self.config.margin, self.config.miner)
        self._loss: AlignmentLoss = from_mapping(
            LOSSES.load(self.config.loss), self.config.parameters, f"{self.config.loss}."
        )

    def loss(self, states: Tensor, batch: Mapping[str, Tensor]) -> Loss:
        """Compute the loss of a batch and its statistics."""
        if not torch.isfinite(states).all():
            raise BiograftError(
                "the encoder gave embeddings that are not finite; its weights are damaged or the "
                "training has diverged: check the encoder, or lower the learning rate"
            )
        cosine = cosines(states)
        mined = self.miner(cosine, batch["labels"])
        loss = self.config.weight * self._loss(cosine, mined)
        return loss, statistics(cosine.detach(), mined)


def statistics(cosine: Tensor, mined: Mined) -> dict[str, float]:
    """Compute the ratios that the miner keeps, and the mean cosines before mining.

    Args:
        cosine: Cosines of the rows: (rows, rows).
        mined: Pairs and triplets that the miner keeps.
    """
    anchors = mined.kept_positives.any(1) & mined.kept_negatives.any(1)
    possible = int((mined.positives.sum(1) * mined.negatives.sum(1)).sum())
    return {
        "anchors_kept": float(anchors.float().mean()),
        "triplets_kept": mined.n_triplets / max(possible, 1),
        "positive_cosine": _mean(cosine, mined.positives),
        "negative_cosine": _mean(cosine, mined.negatives),
    }


def _mean(values: Tensor, mask: Tensor) -> float:
    return float((values * mask).sum() / mask.sum().clamp_min(1))


@torch.no_grad()
def cosine_histogram(
    embeddings: Tensor, labels: Tensor, miner: TripletMarginMiner, *, n_bins: int = 40
) -> dict[str, Any]:
    """Count pairs by cosine in equal bins from -1 to 1, each unordered pair once, as plain values.

    After mining an unordered pair counts if a kept triplet of either end contains it.

    Args:
        embeddings: Vectors of names: (names, width).
        labels: Concept of each name.
        miner: Chooses triplets.
        n_bins: Number of bins.
    """
    cosine = cosines(embeddings)
    mined = miner(cosine, labels)
    upper = torch.ones_like(mined.positives).triu(1)
    kept_positives = mined.kept_positives | mined.kept_positives.T
    kept_negatives = mined.kept_negatives | mined.kept_negatives.T

    def count(mask: Tensor) -> list[int]:
        values = cosine[mask & upper].clamp(-1, 1).cpu().double()
        return [int(n) for n in values.histc(n_bins, -1, 1)]

    return {
        "edges": [round(-1 + 2 * k / n_bins, 6) for k in range(n_bins + 1)],
        "before_mining": {
            "positive": count(mined.positives),
            "negative": count(mined.negatives),
        },
        "after_mining": {"positive": count(kept_positives), "negative": count(kept_negatives)},
    }
