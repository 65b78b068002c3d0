"""Numbers of half precision, in which sums and differences would be too coarse."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from biograft.objectives.examples import IGNORED


def in_single(numbers: Tensor) -> Tensor:
    """Bring half precision to single; others stay as they are."""
    return numbers.float() if numbers.dtype in (torch.float16, torch.bfloat16) else numbers


def labelled_cross_entropy(scores: Tensor, labels: Tensor) -> tuple[Tensor, float]:
    """Give the mean of -ln softmax(scores)[label] (n, classes), and the share that is right.

    ``IGNORED`` labels do not count; where no other is, both are 0, and so is the gradient. Half
    precision is computed in single.
    """
    scores = in_single(scores)
    counted = labels != IGNORED
    n_counted = counted.sum().clamp_min(1)
    losses = cross_entropy(scores, labels, ignore_index=IGNORED, reduction="sum")
    right = ((scores.detach().argmax(-1) == labels) & counted).sum()
    return losses / n_counted, float(right / n_counted)


def count_reduced(reduction: str, n_items: int, n_sequences: int) -> int:
    """Say over how much a loss takes its mean: over items, or over sequences."""
    return n_items if reduction == "mean" else n_sequences


def reduced(reduction: str, losses: Tensor, n_sequences: int) -> Tensor:
    """Give the loss of items (n,): their mean, or their sum for each sequence; 0 of none."""
    n_counted = count_reduced(reduction, len(losses), n_sequences)
    return losses.sum() / max(1, n_counted)


def reduced_cross_entropy(
    reduction: str, scores: Tensor, labels: Tensor, n_sequences: int
) -> tuple[Tensor, dict[str, float]]:
    """Give the loss of items (n, classes) that are all labelled, and its statistics."""
    loss, accuracy = labelled_cross_entropy(scores, labels)
    if reduction == "printed":
        loss = loss * (len(labels) / n_sequences)
    return loss, {"loss": float(loss.detach()), "accuracy": accuracy}
