"""Which tokens count, the loss against plain loops, both reductions, and what is learned."""

from __future__ import annotations

import math

import pytest
import torch
from hand_made_examples import (
    SETTING,
    example,
    layer,
    random_states,
    times,
)

from biograft.training.objectives import (
    EntitySegmentation,
    EntitySegmentationConfig,
    TensorBatch,
    collate,
)

EXAMPLES = [
    example(8, [(1, 4, 3, None), (6, 7, None, None)]),
    example(3),
    example(5, [(2, 4, 3, None)]),
]
LABELS = {(0, 1): 0, (0, 2): 1, (0, 3): 0, (0, 4): 1, (2, 2): 0, (2, 3): 1, (2, 4): 1}


def objective(**options):
    made = EntitySegmentation(EntitySegmentationConfig(**options), SETTING)
    made.head.double()
    return made


def mlp(head, state):
    """W5 tanh(W3 LN(GELU(W4 x)) + b) in plain loops."""
    weights = {name: value.tolist() for name, value in head.state_dict().items()}
    outer = times(weights["outer.weight"], layer(weights["inner.dense.weight"], state))
    bent = [math.tanh(x + bias) for x, bias in zip(outer, weights["outer.bias"], strict=True)]
    return times(weights["classes.weight"], bent)


@pytest.mark.parametrize(("reduction", "n"), [("mean", 7), ("sequence_sum", 3)])
def test_the_loss_is_that_of_plain_loops(reduction, n):
    made, batch = objective(reduction=reduction, weight=0.5), collate(EXAMPLES, 0)
    torch.nn.init.normal_(made.head.outer.bias)
    found = random_states(3, 10)
    loss, stats = made.loss(found, TensorBatch.of(batch))
    losses, right = [], 0
    for (row, position), label in LABELS.items():
        scores = mlp(made.head, found.final[row, position].tolist())
        losses.append(math.log(sum(map(math.exp, scores))) - scores[label])
        right += scores.index(max(scores)) == label
    assert made.count(batch) == n
    assert float(loss.detach()) == pytest.approx(0.5 * sum(losses) / n, rel=1e-9)
    assert stats["loss"] == pytest.approx(sum(losses) / n, rel=1e-9)
    assert stats["accuracy"] == pytest.approx(right / 7)
