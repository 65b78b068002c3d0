"""Cross-entropy with ignored labels, and the reduction of losses over items or sequences."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from biograft.objectives.examples import IGNORED


def to_float32(values: Tensor) -> Tensor:
    """Cast half precision to float32, where sums and differences are accurate enough."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def labelled_cross_entropy(scores: Tensor, labels: Tensor) -> tuple[Tensor, float]:
    """Compute the mean of -ln softmax(scores)[label] over (n, classes), and the accuracy.

    ``IGNORED`` labels do not count; without any other label both are 0, and so is the gradient.
    Half precision is computed in float32.
    """
    scores = to_float32(scores)
    counted = labels != IGNORED
    n_counted = counted.sum().clamp_min(1)
    losses = cross_entropy(scores, labels, ignore_index=IGNORED, reduction="sum")
    correct = ((scores.detach().argmax(-1) == labels) & counted).sum()
    return losses / n_counted, float(correct / n_counted)


def count_reduced(reduction: str, n_items: int, n_sequences: int) -> int:
    """Count what a loss is a mean over: items (``mean``) or sequences (``sequence_sum``)."""
    return n_items if reduction == "mean" else n_sequences


def reduced(reduction: str, losses: Tensor, n_sequences: int) -> Tensor:
    """Reduce the losses of items (n,): their mean, or their sum per sequence; 0 without items."""
    n_counted = count_reduced(reduction, len(losses), n_sequences)
    return losses.sum() / max(1, n_counted)


def reduced_cross_entropy(
    reduction: str, scores: Tensor, labels: Tensor, n_sequences: int
) -> tuple[Tensor, dict[str, float]]:
    """Compute the loss of items (n, classes) that are all labelled, and its statistics."""
    loss, accuracy = labelled_cross_entropy(scores, labels)
    if reduction == "sequence_sum":
        loss = loss * (len(labels) / n_sequences)
    return loss, {"loss": float(loss.detach()), "accuracy": accuracy}
