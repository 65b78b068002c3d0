"""Batches of texts of like length, each of about as many tokens as any other.

Names of a vocabulary are short and uneven: padded to one length, most of the work would be
spent on padding. A batch of constant tokens also keeps what it computes within the caches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch

USUAL_LENGTH = 16
"""Tokens of a usual name; a batch of n names has room for n times as many tokens."""


def token_batches(lengths: npt.NDArray[np.int64], n_tokens: int) -> Iterator[npt.NDArray[np.int64]]:
    """Split texts into batches by length, the longest first, by the room that they take padded.

    The longest come first so that memory, if it is short, is short at once.
    """
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        longest = int(lengths[order[start]])
        stop = start + max(1, n_tokens // max(1, longest))
        yield order[start:stop]
        start = stop


def pad(token_ids: Sequence[Sequence[int]], filler: int) -> dict[str, torch.Tensor]:
    """Make the tensors of a batch, each text filled up to the longest on the right."""
    lengths = np.fromiter(map(len, token_ids), dtype=np.int64, count=len(token_ids))
    width = int(lengths.max(initial=0))
    mask = np.arange(width) < lengths[:, None]  # (batch, tokens)
    ids = np.full(mask.shape, filler, dtype=np.int64)
    ids[mask] = np.fromiter((x for row in token_ids for x in row), np.int64, int(lengths.sum()))
    return {
        "input_ids": torch.from_numpy(ids),
        "attention_mask": torch.from_numpy(mask.astype(np.int64)),
    }
