"""The tokens of texts that are put together from parts, and the states of an encoder at them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from biograft.models.batches import pad, token_batches
from biograft.models.encoder import TextEncoder
from biograft.models.precision import autocast_in

_BATCH_TOKENS = 4096


def inner_ids(tokenizer: Any, text: str) -> list[int]:
    """Return the tokens of a text without special tokens."""
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids


def enclose(tokenizer: Any, token_ids: Sequence[int]) -> list[int]:
    """Put the special tokens of a BERT around the tokens of a text."""
    return [tokenizer.cls_token_id, *token_ids, tokenizer.sep_token_id]


def token_states(
    encoder: TextEncoder,
    token_ids: Sequence[Sequence[int]],
    *,
    n_tokens: int = _BATCH_TOKENS,
    precision: str = "auto",
) -> Iterator[tuple[npt.NDArray[np.int64], torch.Tensor]]:
    """Yield batches of texts, as rows of ``token_ids``, with the last states of their tokens.

    A batch holds at most ``n_tokens`` tokens, padding included. Entity inputs are added for a model
    that takes them, unless ``encoder.finder`` is None.
    """
    lengths = np.fromiter(map(len, token_ids), np.int64, len(token_ids))
    model, device = encoder.model.eval(), encoder.device
    model = model.get_encoder() if model.config.is_encoder_decoder else model
    padding = int(encoder.tokenizer.pad_token_id or 0)
    for rows in token_batches(lengths, n_tokens):
        batch = pad([token_ids[row] for row in rows.tolist()], padding)
        batch = {key: value.to(device) for key, value in batch.items()}
        with torch.inference_mode(), autocast_in(precision, device):
            states = model(**encoder.add_entity_inputs(batch)).last_hidden_state
        yield rows, states.float()  # (batch, tokens, dim)
