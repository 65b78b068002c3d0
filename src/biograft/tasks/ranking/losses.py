"""Losses of right answers, each scored together with wrong ones of the same question."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


def pairwise(scores: Tensor, sizes: Sequence[int], margin: float) -> Tensor:
    """Compute the mean over right and wrong answers of max(0, margin - right + wrong).

    ``scores`` are those of groups one after the other, so many of each as ``sizes`` says, the
    right answer first. They are brought to 0 ... 1 by a sigmoid, so that the margin means
    something and is not reached by making all weights larger.
    """
    groups = torch.split(scores.sigmoid(), list(sizes))
    gaps = torch.cat([margin - group[0] + group[1:] for group in groups])
    return gaps.clamp(min=0).mean()


def listwise(scores: Tensor, sizes: Sequence[int]) -> Tensor:
    """Compute the mean over groups of -log p of the right answer, which is the first."""
    groups = nn.utils.rnn.pad_sequence(
        [*torch.split(scores, list(sizes))], batch_first=True, padding_value=-torch.inf
    )
    return -groups.log_softmax(dim=1)[:, 0].mean()
