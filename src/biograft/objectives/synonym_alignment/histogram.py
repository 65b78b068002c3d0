"""Histograms of the cosine of positive and of negative pairs, before and after mining."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from biograft.objectives.synonym_alignment.distances import cosines
from biograft.objectives.synonym_alignment.mining import TripletMarginMiner


@torch.no_grad()
def cosine_histogram(
    embeddings: Tensor, labels: Tensor, miner: TripletMarginMiner, *, n_bins: int = 40
) -> dict[str, Any]:
    """Count pairs by cosine in equal bins from -1 to 1, each unordered pair once, as plain values.

    After mining an unordered pair counts if it stands in a kept triplet from either end.
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
