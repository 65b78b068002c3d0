"""Which neighbours are read, what counts, the loss against plain loops, and what is learned."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hand_made_examples import (
    SETTING,
    example,
    layer,
    random_states,
    times,
    unlabelled,
)

from biograft.errors import ConfigError
from biograft.training.objectives import (
    ContextEntityConsistency,
    ContextEntityConsistencyConfig,
    TensorBatch,
    collate,
)

RNG = np.random.default_rng(0)


def objective(**options):
    made = ContextEntityConsistency(ContextEntityConsistencyConfig(**options), SETTING)
    made.head.double()
    return made


EXAMPLES = [
    example(8, [(1, 2, None, 1), (4, 4, None, None), (6, 8, None, 0)]),
    example(3),
    example(5, [(2, 5, None, 1)]),
]


def mlp(head, given):
    """W2 LN(GELU(W1 h)) in plain loops."""
    weights = {name: value.tolist() for name, value in head.state_dict().items()}
    return times(weights["classes.weight"], layer(weights["inner.dense.weight"], given))


@pytest.mark.parametrize("weight", [2.0, 0.5])
def test_the_loss_is_that_of_plain_loops(weight):
    made, batch = objective(weight=weight), collate(EXAMPLES, 0)
    found = random_states(3, 10)
    loss, stats = made.loss(found, TensorBatch.of(batch))
    losses, right = [], 0
    for row, first, last, label in [(0, 1, 2, 1), (0, 6, 8, 0), (2, 2, 5, 1)]:
        final = found.final[row].tolist()
        scores = mlp(made.head, final[first - 1] + final[last + 1])
        losses.append(math.log(sum(map(math.exp, scores))) - scores[label])
        right += scores.index(max(scores)) == label
    assert made.count(batch) == 3
    assert float(loss.detach()) == pytest.approx(weight * sum(losses) / 3, rel=1e-9)
    assert stats["loss"] == pytest.approx(sum(losses) / 3, rel=1e-9)
    assert stats["accuracy"] == pytest.approx(right / 3)


def test_replaced_entities_are_not_masked():
    made = objective().prepare(EXAMPLES[0], RNG)
    assert np.flatnonzero(made.fixed).tolist() == [1, 2, 6, 7, 8]
    assert made.tokens.tolist() == EXAMPLES[0].tokens.tolist()
    before = np.arange(10) == 4
    kept = objective().prepare(example(8, [(1, 2, None, 1), (4, 4, None, None)], fixed=before), RNG)
    assert np.flatnonzero(kept.fixed).tolist() == [1, 2, 4]
    assert np.flatnonzero(before).tolist() == [4]


def test_text_without_replaced_entities_is_refused():
    with pytest.raises(
        ConfigError, match=r"context_entity_consistency: no entity .* \[stream\.substitution\]"
    ):
        objective().prepare(unlabelled(), RNG)
