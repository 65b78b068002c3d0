"""Linking against the whole table, in parts, and against samples of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from biograft.training.objectives import (
    EntityLinking,
    EntityLinkingConfig,
    Setting,
    TensorBatch,
    TextExample,
    TextStates,
    collate,
)

ENTITIES = [3, -1, 0, 6, 6]


def setting(counts: np.ndarray) -> Setting:
    return Setting(mask=1, n_tokens=4, special=(), width=4, entity_counts=counts)


def tensors(entities):
    mentions = np.array([(k, k, row) for k, row in enumerate(entities)], np.int64).reshape(-1, 3)
    tokens = np.zeros(max(1, len(entities)), np.int64)
    text = collate([TextExample(tokens, tokens, tokens, mentions)], 0)
    return text, TensorBatch.of(text)


def states(queries, table):
    return TextStates(torch.zeros(1), lambda some: some, queries=queries, table=table)


def random_tensors(n_mentions=5, n_entities=7, dim=4, seed=0):
    torch.manual_seed(seed)
    made = torch.randn(n_mentions, dim, dtype=torch.float64, requires_grad=True)
    return made, torch.randn(n_entities, dim, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("weight", [1.0, 2.0])
def test_the_loss_is_that_of_plain_loops_and_unknown_entities_do_not_count(weight):
    queries, table = random_tensors()
    text, batch = tensors(ENTITIES)
    made = EntityLinking(EntityLinkingConfig(weight=weight))
    loss, stats = made.loss(states(queries, table), batch)
    losses, right = [], 0
    for row, gold in enumerate(ENTITIES):
        if gold < 0:
            continue
        rows, own = table.tolist(), queries[row].tolist()
        scores = [sum(own[d] * rows[e][d] for d in range(4)) for e in range(7)]
        losses.append(math.log(sum(math.exp(score) for score in scores)) - scores[gold])
        right += scores.index(max(scores)) == gold
    assert made.count(text) == 4
    assert float(loss.detach()) == pytest.approx(weight * sum(losses) / 4, rel=1e-12)
    assert stats == {"loss": pytest.approx(sum(losses) / 4), "accuracy": right / 4}


@pytest.mark.parametrize("max_scores", [1, 7, 14, 20])
def test_in_parts_the_loss_and_its_gradients_are_the_same(max_scores):
    found = []
    for most in (max_scores, 1 << 20):
        queries, table = random_tensors()
        made = EntityLinking(EntityLinkingConfig(max_scores=most))
        loss, stats = made.loss(states(queries, table), tensors(ENTITIES)[1])
        loss.backward()
        found.append((loss.detach(), queries.grad, table.grad))
        assert stats["accuracy"] == 0.25
    torch.testing.assert_close(*found, rtol=1e-10, atol=1e-14)


class LargestTensor(TorchDispatchMode):
    """Records the number of elements of the largest tensor that is computed."""

    n_elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        sizes = [each.numel() for each in tree_leaves(result) if isinstance(each, torch.Tensor)]
        self.n_elements = max(self.n_elements, *sizes, 0)
        return result


@pytest.mark.parametrize(("max_scores", "largest"), [(3500, 3500), (3499, 3000), (1 << 25, 30_000)])
def test_no_tensor_of_either_pass_is_larger_than_the_setting(max_scores, largest):
    queries, table = random_tensors(60, 500)
    text, batch = tensors(range(60))
    made = EntityLinking(EntityLinkingConfig(max_scores=max_scores))
    with LargestTensor() as computed:
        loss, _ = made.loss(states(queries, table), batch)
        loss.backward()
    assert made.count(text) == 60
    assert computed.n_elements == largest  # the table itself has 2,000 elements


def test_many_samples_have_the_sum_of_the_whole_table_and_so_its_loss():
    queries, table = random_tensors(seed=3)
    counts = np.array([50, 0, 9, 3, 1, 20, 4])
    _, batch = tensors([3, 0, 6, 1, 2])
    full, _ = EntityLinking(EntityLinkingConfig()).loss(states(queries, table), batch)
    made = EntityLinking(EntityLinkingConfig(n_sampled=200_000), setting(counts))
    torch.manual_seed(0)
    sampled, _ = made.loss(states(queries, table), batch)
    assert float(sampled.detach()) == pytest.approx(float(full.detach()), rel=0.01)
