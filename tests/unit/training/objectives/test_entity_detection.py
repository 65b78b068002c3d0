"""Labels of tokens from mentions, and the loss against plain loops and the reference."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from biograft.training.objectives import (
    EntityDetection,
    EntityDetectionConfig,
    TensorBatch,
    TextExample,
    TextStates,
    collate,
)


def example(n_tokens, mentions):
    tokens = np.arange(n_tokens)
    spans = np.array(mentions, np.int64).reshape(-1, 3)
    return TextExample(tokens, np.zeros_like(tokens), tokens, spans)


def prepared(n_tokens, mentions):
    made = EntityDetection(EntityDetectionConfig())
    return made.prepare(example(n_tokens, mentions), np.random.default_rng(0))


def states(detection):
    return TextStates(torch.zeros(1), lambda some: some, detection=detection)


def test_tokens_are_tagged_by_mentions():
    labels = prepared(9, [(1, 1, 5), (2, 4, -1), (7, 7, 0)]).token_labels["entity_detection"]
    assert labels.tolist() == [0, 1, 1, 2, 2, 0, 0, 1, 0]
    assert not prepared(4, []).token_labels["entity_detection"].any()


@pytest.mark.parametrize("weight", [1.0, 0.25])
def test_the_loss_is_that_of_plain_loops_and_padding_does_not_count(weight):
    text = collate([prepared(5, [(1, 2, 0)]), prepared(3, [])], 0)
    torch.manual_seed(1)
    scores = torch.randn(2, 5, 3, dtype=torch.float64)
    made = EntityDetection(EntityDetectionConfig(weight=weight))
    loss, stats = made.loss(states(scores), TensorBatch.of(text))
    losses, right = [], 0
    for row, n_tokens in enumerate((5, 3)):
        for position in range(n_tokens):
            label = [[0, 1, 2, 0, 0], [0, 0, 0]][row][position]
            values = scores[row, position].tolist()
            losses.append(math.log(sum(math.exp(value) for value in values)) - values[label])
            right += values.index(max(values)) == label
    assert made.count(text) == 8
    assert float(loss) == pytest.approx(weight * sum(losses) / 8, rel=1e-12)
    assert stats["accuracy"] == pytest.approx(right / 8)
