"""The objective as a whole: cosines, mining, loss, and what there is to know of a batch."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from biograft.config import from_mapping
from biograft.errors import BiograftError
from biograft.objectives.synonym_alignment.config import LOSSES, SynonymAlignmentConfig
from biograft.objectives.synonym_alignment.distances import cosines
from biograft.objectives.synonym_alignment.losses import AlignmentLoss
from biograft.objectives.synonym_alignment.mining import Mined, TripletMarginMiner


class SynonymAlignment:
    """Pulls the names of a concept together, and apart from the names of others in the batch."""

    def __init__(self, config: SynonymAlignmentConfig | None = None) -> None:
        self.config = config or SynonymAlignmentConfig()
        self.miner = TripletMarginMiner(self.config.margin, self.config.miner)
        self._loss: AlignmentLoss = from_mapping(
            LOSSES.load(self.config.loss), self.config.parameters, f"{self.config.loss}."
        )

    def loss(
        self, embeddings: Tensor, batch: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, float]]:
        """Give the loss of a batch and its statistics.

        ``embeddings`` is (rows, width), of any float type and length; ``batch["labels"]`` (rows,)
        says of which concept each row is.
        """
        labels = batch["labels"]
        if not torch.isfinite(embeddings).all():
            raise BiograftError(
                "the encoder gave embeddings that are not finite; its weights are damaged or the "
                "training has diverged: check the encoder, or lower the learning rate"
            )
        cosine = cosines(embeddings)
        mined = self.miner(cosine, labels)
        loss = self.config.weight * self._loss(cosine, mined)
        return loss, statistics(cosine.detach(), mined)


def statistics(cosine: Tensor, mined: Mined) -> dict[str, float]:
    """Say what the miner kept, and how near positives and negatives are before mining."""
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
