"""What aligning an encoder asks of the loop: the loss of a batch of pairs, and how it stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from biograft.nn import TextEncoder
from biograft.nn.precision import computing_in
from biograft.objectives.synonym_alignment import SynonymAlignment, cosine_histogram
from biograft.streams import PairBatch


class Embedder(nn.Module):
    """An encoder as one module, so that several processes can share its gradients."""

    def __init__(self, encoder: TextEncoder) -> None:
        super().__init__()
        self.model: nn.Module = encoder.model
        self._encoder = encoder

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Give the vectors of a tokenised batch, as they are pooled."""
        return self._encoder.embed(batch)


class Alignment:
    """Losses of pairs of names; both names go through the encoder in one pass."""

    def __init__(self, encoder: TextEncoder, objectives: Mapping[str, SynonymAlignment]) -> None:
        self.encoder, self.objectives = encoder, objectives

    def loss(self, model: nn.Module, batch: PairBatch) -> tuple[Tensor, dict[str, float]]:
        """Give the sum of the objectives' losses, and their statistics."""
        embeddings, labels = self._embed(model, batch)
        total, statistics = embeddings.new_zeros((), dtype=torch.float32), {}
        for name, objective in self.objectives.items():
            loss, stats = objective.loss(embeddings, {"labels": labels})
            prefix = f"{name}." if len(self.objectives) > 1 else ""
            total = total + loss
            statistics.update({f"{prefix}{key}": value for key, value in stats.items()})
        return total, statistics

    def evaluate(self, model: nn.Module, batch: PairBatch, precision: str) -> dict[str, Any]:
        """Say how near the names of a batch are, as numbers and as histograms."""
        with computing_in(precision, self.encoder.device):
            embeddings, labels = self._embed(model, batch)
        found = {}
        for name, objective in self.objectives.items():
            loss, stats = objective.loss(embeddings, {"labels": labels})
            cosines = cosine_histogram(embeddings, labels, objective.miner)
            found[name] = {"loss": float(loss), **stats, "cosines": cosines}
        return found

    def _embed(self, model: nn.Module, batch: PairBatch) -> tuple[Tensor, Tensor]:
        tokens = self.encoder.tokenize([*batch.left, *batch.right])
        embeddings: Tensor = model(tokens)  # (2 pairs, width)
        labels = torch.from_numpy(batch.labels).to(embeddings.device)
        return embeddings, labels.repeat(2)
