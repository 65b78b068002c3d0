"""Names to vectors with an encoder: by default the mean of its tokens but the special ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from biograft.errors import ConfigError, StoreError
from biograft.nn.batches import USUAL_LENGTH, pad, token_batches
from biograft.nn.encoder import TextEncoder, pool_mean
from biograft.nn.precision import autocast_in
from biograft.probing.similarity.report import AskedNames, Scores, Vectors
from biograft.progress import Progress

POOLINGS = ("inner", "mean", "cls", "own")
"""``inner``: the mean without special tokens; ``own``: what the encoder's files say."""
_ROOM = 64 * USUAL_LENGTH
"""Tokens in a batch."""


class NameEncoder:
    """An encoder as a measure of how similar names are: the cosine of their vectors."""

    def __init__(self, encoder: TextEncoder, pooling: str = "inner") -> None:
        self.encoder, self.pooling = encoder, pooling

    @classmethod
    def from_pretrained(
        cls, name_or_folder: str, pooling: str = "inner", *, told: bool = False
    ) -> NameEncoder:
        """Load an encoder, with or without a knowledge layer, from a folder or by name.

        A model that must be told which entities a name is of is told nothing unless ``told``: two
        names of one concept would be told the same, which gives the answer away.
        """
        if pooling not in POOLINGS:
            raise ConfigError(f"pooling: expected one of {', '.join(POOLINGS)}, found {pooling!r}")
        of_all = {"inner": "mean", "own": None}.get(pooling, pooling)
        encoder = TextEncoder.from_pretrained(name_or_folder, pooling=of_all)
        if not told:
            encoder.finder = None
        return cls(encoder, pooling)

    def __call__(self, names: AskedNames, progress: Progress | None = None) -> Scores:
        """Score what is offered to each query."""
        return names.cosines(self.encode(names.texts, progress))

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Compute a vector for each text, in 32 bits on any machine: (texts, dim)."""
        if self.pooling != "inner":
            return self.encoder.encode(texts, precision="fp32", normalize=False, progress=progress)
        vectors = self._encode_inner(texts, progress)
        if not np.isfinite(vectors).all():
            raise StoreError(
                f"{self.encoder.name}: gives NaN or infinity for names; its weights are damaged"
            )
        return vectors

    def _encode_inner(self, texts: Sequence[str], progress: Progress | None) -> Vectors:
        ids, inner = self._tokens(texts)
        lengths = np.fromiter(map(len, ids), np.int64, len(ids))
        vectors = np.zeros((len(texts), self.encoder.dim), np.float32)
        model, device, n_done = self.encoder.model.eval(), self.encoder.device, 0
        reader = model.get_encoder() if model.config.is_encoder_decoder else model
        filler = int(self.encoder.tokenizer.pad_token_id or 0)
        with torch.inference_mode(), autocast_in("fp32", device):
            for rows in token_batches(lengths, _ROOM):
                batch = {k: v.to(device) for k, v in pad([ids[r] for r in rows], filler).items()}
                batch = self.encoder.add_entity_inputs(batch)
                # padded with zeros, so that padding does not count either
                counted = pad([inner[r] for r in rows], 0)["input_ids"].to(device)
                states = reader(**batch).last_hidden_state  # (batch, tokens, dim)
                vectors[rows] = pool_mean(states, counted).cpu().numpy()
                n_done += len(rows)
                if progress:
                    progress.advance(len(rows), n_done / len(texts))
        return vectors

    def _tokens(self, texts: Sequence[str]) -> tuple[list[list[int]], list[list[int]]]:
        """Give the tokens of each text, and 1 for each that is no special one, such as [CLS]."""
        encoded = self.encoder.tokenizer(
            [self.encoder.prepare(text) for text in texts],
            truncation=True,
            max_length=self.encoder.max_length,
            return_attention_mask=False,
            return_token_type_ids=False,
            return_special_tokens_mask=True,
        )
        inner = [[1 - special for special in row] for row in encoded["special_tokens_mask"]]
        return encoded["input_ids"], inner
