"""How the losses of labelled items become one: as a mean over them, or as papers print it.

Printed are sums over the items of a sample. A sample is a sequence here, and the loss of an update
the mean over its sequences, so that it does not depend on how they are dealt to batches.
"""

from __future__ import annotations

from torch import Tensor

from biograft.objectives.choices import check_choice
from biograft.objectives.cross_entropy import labelled_cross_entropy

REDUCTIONS = ("mean", "printed")
MEAN_OR_SUM = ("mean", "sum")
"""The names of the same two ways in SMedBERT's objectives."""


def check_reduction(reduction: str, known: tuple[str, ...] = REDUCTIONS) -> None:
    """Refuse an unknown way."""
    check_choice("reduction", reduction, known)


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
