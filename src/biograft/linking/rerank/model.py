"""The cross-encoder: one score for a mention in its text read together with a candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from biograft.errors import StoreError
from biograft.linking.rerank.config import RerankConfig
from biograft.linking.rerank.pairs import PairTokenizer, PairTokens
from biograft.nn import TextEncoder
from biograft.nn.batching import token_batches
from biograft.nn.precision import computing_in

ENCODER, HEAD = "encoder", "head.safetensors"
_DROPOUT = 0.1
_TOKENS_AT_ONCE = 8192
"""Tokens of a batch that is only scored, the padding counted."""

Floats = npt.NDArray[np.float64]


class CrossEncoder(nn.Module):
    """An encoder with a linear head, and a bias for the text that stands for no concept."""

    def __init__(self, encoder: TextEncoder, config: RerankConfig) -> None:
        super().__init__()
        self.encoder = encoder
        self.pairs = PairTokenizer(encoder, config.context_characters)
        self.model: nn.Module = encoder.model
        self.dropout = nn.Dropout(_DROPOUT)
        self.head = nn.Linear(encoder.dim, 1)
        self.nil_bias = nn.Parameter(torch.zeros(1))
        start = torch.Generator().manual_seed(config.training.seed)
        with torch.no_grad():
            self.head.weight.normal_(std=0.02, generator=start)
            self.head.bias.zero_()
        self.to(encoder.device)

    @classmethod
    def start(cls, config: RerankConfig) -> CrossEncoder:
        """Make a cross-encoder that has learnt nothing yet of an encoder."""
        encoder = TextEncoder.from_pretrained(
            config.encoder, pooling=config.pooling, max_length=config.max_length
        )
        return cls(encoder, config)

    def forward(self, batch: Mapping[str, Tensor], is_nil: Tensor) -> Tensor:
        """Score the pairs of a batch: (pairs,); ``is_nil`` marks those of no concept."""
        vectors = self.dropout(self.encoder.embed(batch))  # (pairs, dim)
        scores: Tensor = self.head(vectors)[:, 0].float()
        return scores + self.nil_bias * is_nil.to(scores.device)

    def score(
        self, pairs: Sequence[PairTokens], is_nil: npt.NDArray[np.bool_], precision: str = "auto"
    ) -> Floats:
        """Score pairs without learning, those of like length together: (pairs,)."""
        lengths = np.fromiter(map(len, pairs), np.int64, len(pairs))
        scores = np.zeros(len(pairs))
        training = self.training
        self.eval()
        try:
            with torch.inference_mode(), computing_in(precision, self.encoder.device):
                for rows in token_batches(lengths, _TOKENS_AT_ONCE):
                    batch = self.pairs.pad([pairs[row] for row in rows])
                    scores[rows] = self(batch, torch.from_numpy(is_nil[rows])).cpu().numpy()
        finally:
            self.train(training)
        if not np.isfinite(scores).all():
            raise StoreError(
                f"{self.encoder.name}: gives NaN or infinity for "
                f"{int((~np.isfinite(scores)).sum()):,} of {len(scores):,} pairs; its weights are "
                "damaged, train the re-ranker again"
            )
        return scores

    def save(self, folder: Path) -> None:
        """Write the encoder, as any other, and the head beside it."""
        self.encoder.save(folder / ENCODER)
        head = {**self.head.state_dict(), "nil_bias": self.nil_bias.detach()}
        save_file({name: value.cpu().contiguous() for name, value in head.items()}, folder / HEAD)

    @classmethod
    def load(cls, folder: Path, config: RerankConfig) -> CrossEncoder:
        """Load what ``save`` wrote."""
        model = cls(TextEncoder.from_pretrained(folder / ENCODER), config)
        try:
            head = load_file(folder / HEAD)
            bias = head.pop("nil_bias")
            model.head.load_state_dict(head)
        except (OSError, KeyError, RuntimeError, SafetensorError) as error:
            reason = " ".join(str(error).split())
            raise StoreError(
                f"{folder / HEAD}: damaged ({reason}); train the re-ranker again"
            ) from error
        model.nil_bias.data.copy_(bias)
        for name, value in (*model.head.named_parameters(), ("nil_bias", model.nil_bias)):
            if not torch.isfinite(value).all():
                raise StoreError(
                    f"{folder / HEAD}: holds NaN or infinity ({name}); train the re-ranker again"
                )
        return model
