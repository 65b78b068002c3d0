"""Losses of right and wrong answers against plain loops."""

from __future__ import annotations

from math import exp, log

import pytest
import torch

from biograft.tasks.ranking import listwise, pairwise

GROUPS = [[0.2, 0.1, -0.5], [1.0, 1.4], [-2.0, 3.0, 0.0, -1.0]]
SIZES = [len(group) for group in GROUPS]


@pytest.fixture
def scores():
    return torch.tensor([s for group in GROUPS for s in group], dtype=torch.float64)


def sigmoid(x):
    return 1 / (1 + exp(-x))


@pytest.mark.parametrize("margin", [0.05, 0.3, 1.0])
def test_pairwise(scores, margin):
    each = [
        max(0.0, margin - sigmoid(right) + sigmoid(other))
        for right, *wrong in GROUPS
        for other in wrong
    ]
    assert float(pairwise(scores, SIZES, margin)) == pytest.approx(sum(each) / len(each))


def test_listwise(scores):
    each = [-log(exp(group[0]) / sum(map(exp, group))) for group in GROUPS]
    scores.requires_grad_()
    loss = listwise(scores, SIZES)
    assert loss.item() == pytest.approx(sum(each) / len(each))
    loss.backward()
    assert scores.grad.isfinite().all()
    # what is right is pushed up, what is wrong down
    assert (scores.grad[[0, 3, 5]] < 0).all()
    assert (scores.grad[[1, 2, 4, 6, 7, 8]] > 0).all()
