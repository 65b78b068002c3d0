"""Cross-entropy over what is labelled, and how often the best score is the right one."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import cross_entropy

from biograft.objectives.half_precision import in_single
from biograft.objectives.records import IGNORED


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
