"""Similarity of names by an encoder: cosine of mean token vectors, without special tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from biograft.errors import ConfigError, StoreError
from biograft.models.batches import USUAL_LENGTH, pad, token_batches
from biograft.models.encoder import TextEncoder, pool_mean
from biograft.models.precision import autocast_in
from biograft.progress import Progress
from biograft_lab.probing.similarity.report import QueryNames, Scores, Vectors

_BATCH_TOKENS = 64 * USUAL_LENGTH
"""Tokens in a batch."""


class EncoderSimilarity:
    """An encoder as a similarity measure: the cosine of name vectors."""

    def __init__(self, encoder: TextEncoder) -> None:
        self.encoder = encoder

    @classmethod
    def from_pretrained(
        cls, name_or_folder: str, *, with_entities: bool = False
    ) -> EncoderSimilarity:
        """Load an encoder, with or without a knowledge layer.

        Args:
            name_or_folder: Folder, or name on the hub.
            with_entities: Give entity-aware models the entities of the names.
        """
        encoder = TextEncoder.from_pretrained(name_or_folder, pooling="mean")
        if not with_entities:
            encoder.finder = None
        return cls(encoder)

    def __call__(self, names: QueryNames, progress: Progress | None = None) -> Scores:
        """Score the candidates of each query; refuse entity inputs that tell the answer."""
        self._check_entities(names)
        return names.cosines(self.encode(names.texts, progress))

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Compute a vector for each text, in 32 bits on any device: (texts, dim)."""
        vectors = self._encode_inner(texts, progress)
        if not np.isfinite(vectors).all():
            raise StoreError(
                f"{self.encoder.name}: gives NaN or infinity for names; its weights are damaged"
            )
        return vectors

    def _check_entities(self, names: QueryNames) -> None:
        if self.encoder.finder is None:
            return
        entities = []  # of the names that are a mention as a whole
        for tokens, inner in zip(*self._tokens(names.texts), strict=True):
            found = self.encoder.finder.find(tokens)
            whole = len(found) == 1 and found[0].last - found[0].first + 1 == sum(inner)
            entities.append(found[0].row if whole else None)
        rows = names.rows.tolist()
        same = [
            (query, positive)
            for query, positive, *_ in rows
            if entities[query] is not None and entities[query] == entities[positive]
        ]
        if same:
            first, second = (names.texts[number] for number in same[0])
            raise ConfigError(
                f"--with-entities: {self.encoder.name} has both names of {len(same):,} of "
                f"{len(rows):,} queries as one entity, such as {first!r} and {second!r}, which "
                "tells the answer; pre-train it with a store that has synonyms as concepts "
                "(kb build without --same-as)"
            )

    def _encode_inner(self, texts: Sequence[str], progress: Progress | None) -> Vectors:
        ids, inner = self._tokens(texts)
        lengths = np.fromiter(map(len, ids), np.int64, len(ids))
        vectors = np.zeros((len(texts), self.encoder.dim), np.float32)
        model, device, n_done = self.encoder.model.eval(), self.encoder.device, 0
        encoder_model = model.get_encoder() if model.config.is_encoder_decoder else model
        padding_id = int(self.encoder.tokenizer.pad_token_id or 0)
        with torch.inference_mode(), autocast_in("fp32", device):
            for rows in token_batches(lengths, _BATCH_TOKENS):
                batch = {
                    k: v.to(device) for k, v in pad([ids[r] for r in rows], padding_id).items()
                }
                batch = self.encoder.add_entity_inputs(batch)
                # zeros for padding, too
                is_inner = pad([inner[r] for r in rows], 0)["input_ids"].to(device)
                states = encoder_model(**batch).last_hidden_state  # (batch, tokens, dim)
                vectors[rows] = pool_mean(states, is_inner).cpu().numpy()
                n_done += len(rows)
                if progress:
                    progress.advance(len(rows), n_done / len(texts))
        return vectors

    def _tokens(self, texts: Sequence[str]) -> tuple[list[list[int]], list[list[int]]]:
        """Return the tokens of each text, and 1 for each token that is not special, like [CLS]."""
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
