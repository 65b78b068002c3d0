"""Batches of texts of similar length with a constant number of tokens, and padding.

The names of a terminology are short and uneven: padded to one length, they would be mostly
padding. A constant number of tokens also keeps the activations of a batch within the caches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from biograft.arrays import Ints

USUAL_LENGTH = 16
"""Tokens of a typical name; a batch of n names holds n times as many tokens."""


def token_batches(lengths: Ints, n_tokens: int) -> Iterator[Ints]:
    """Split texts into batches of similar length by their padded size, longest first.

    With the longest first, memory runs out at once or never.

    Args:
        lengths: Number of tokens of each text.
        n_tokens: Largest number of tokens of a batch, padding included.
    """
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        longest = int(lengths[order[start]])
        stop = start + max(1, n_tokens // max(1, longest))
        yield order[start:stop]
        start = stop


def pad(token_ids: Sequence[Sequence[int]], padding: int) -> dict[str, torch.Tensor]:
    """Return the tensors of a batch, padded on the right to the longest text.

    Args:
        token_ids: Token ids of each text.
        padding: Id of the padding token.
    """
    lengths = np.fromiter(map(len, token_ids), dtype=np.int64, count=len(token_ids))
    width = int(lengths.max(initial=0))
    mask = np.arange(width) < lengths[:, None]  # (batch, tokens)
    ids = np.full(mask.shape, padding, dtype=np.int64)
    ids[mask] = np.fromiter((x for row in token_ids for x in row), np.int64, int(lengths.sum()))
    return {
        "input_ids": torch.from_numpy(ids),
        "attention_mask": torch.from_numpy(mask.astype(np.int64)),
    }
