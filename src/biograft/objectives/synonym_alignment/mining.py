"""Which triplets of a batch teach something: an anchor, a positive, and a negative too near.

Nobody needs the triplets one by one. Every loss here can be told from how often each pair occurs
in a kept triplet, and that is counted with a sort per row: work and memory grow with the square
of the batch, not with its cube.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from biograft.objectives.synonym_alignment.distances import unit_distances


@dataclass(frozen=True, slots=True)
class Mined:
    """What is left of a batch; rows are anchors, columns the other end of a pair."""

    distances: Tensor  # (rows, rows), without gradient
    positives: Tensor  # (rows, rows) bool: another row of the same concept
    negatives: Tensor  # (rows, rows) bool: a row of another concept
    low: float
    """A negative is farther than the positive by more than this ..."""
    high: float
    """... and by at most this."""
    positive_counts: Tensor
    """In how many kept triplets of an anchor each positive stands (1 without a miner)."""
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
        """How many triplets are kept."""
        counts = self.positive_counts
        if self.high == torch.inf:
            counts = self.positives.sum(1) * self.negatives.sum(1)
        return int(counts.sum())

    def counts_below(self, margin: float) -> tuple[Tensor, Tensor]:
        """Count, of the kept triplets, those whose negative is not farther by ``margin``."""
        parts = (self.distances, self.positives, self.negatives)
        return _between(parts, self.low, min(margin, self.high), strict=margin <= self.high)


class TripletMarginMiner:
    """Keeps (a, p, n) when d(a, n) - d(a, p) <= margin, d between rows of length one."""

    def __init__(self, margin: float = 0.2, kind: str = "all") -> None:
        self.margin, self.kind = margin, kind

    @torch.no_grad()
    def __call__(self, cosine: Tensor, labels: Tensor) -> Mined:
        """Mine a batch; ``labels`` says of which concept each row is."""
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
    place = distances.masked_fill(~negatives, torch.inf)
    near = torch.searchsorted(place.sort(1).values, reach, right=not strict)
    short = torch.searchsorted(reach.sort(1).values, place, right=strict)
    return near, len(distances) - short
