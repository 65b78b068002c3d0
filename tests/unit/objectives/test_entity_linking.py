"""Linking against the whole table, in parts, and against samples of it."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from biograft.errors import ConfigError
from biograft.objectives import (
    EntityLinking,
    EntityLinkingConfig,
    Setting,
    TensorBatch,
    TextExample,
    TextStates,
    collate,
)
from biograft.objectives.entity_linking import full_losses, sample_entities, sampled_losses

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


@pytest.mark.parametrize("max_scores", [1, 7, 14, 20, 35])
def test_in_parts_the_losses_and_gradients_are_the_same(max_scores):
    gold = torch.tensor([3, 1, 0, 6, 6])
    whole, table = random_tensors()
    expected, right = full_losses(whole, table, gold, 1 << 20)
    expected.sum().backward()
    parts, same_table = random_tensors()
    losses, also_right = full_losses(parts, same_table, gold, max_scores)
    losses.sum().backward()
    torch.testing.assert_close(losses, expected, rtol=1e-12, atol=0)
    torch.testing.assert_close(parts.grad, whole.grad, rtol=1e-10, atol=1e-14)
    torch.testing.assert_close(same_table.grad, table.grad, rtol=1e-10, atol=1e-14)
    assert torch.equal(right, also_right)


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


@pytest.mark.parametrize("n_sampled", [0, 3])
def test_without_a_known_entity_the_loss_is_zero(n_sampled):
    queries, table = random_tensors(2)
    made = EntityLinking(EntityLinkingConfig(n_sampled=n_sampled))
    loss, stats = made.loss(states(queries, table), tensors([-1, -1])[1])
    loss.backward()
    assert stats == {"loss": 0.0, "accuracy": 0.0}
    assert not table.grad.any()
    empty, _ = made.loss(states(queries[:0], table), tensors([])[1])
    assert float(empty.detach()) == 0


@pytest.mark.parametrize("name", ["gold", "many"])
def test_it_gives_the_reference_loss_of_kebiolm(shared_data, name):
    folder = shared_data("parity/kebiolm_paper")
    weights = load_file(shared_data("parity/kebiolm/model.safetensors"))
    tables = [value for value in weights.values() if value.shape == (50, 16)]
    batch = load_file(shared_data(f"parity/kebiolm/batch_{name}.safetensors"))
    arrays = load_file(folder / f"batch_{name}.safetensors")
    counts = torch.bincount(arrays["mentions"][:, 0], minlength=len(batch["gold_entity_ids"]))
    gold = torch.cat([row[:n] for row, n in zip(batch["gold_entity_ids"], counts, strict=True)])
    losses, _ = full_losses(arrays["mention_vectors"], tables[0].double(), gold, 100)
    torch.testing.assert_close(losses, arrays["linking_losses"], rtol=1e-9, atol=0)
    expected = json.loads((folder / "expected.json").read_text())[name]["losses"]["linking"]
    assert float(losses.mean()) == pytest.approx(expected, rel=1e-9)


def test_losses_over_a_sample_are_those_of_plain_loops():
    queries, table = random_tensors()
    gold, sample = torch.tensor([3, 1, 0, 6, 6]), torch.tensor([1, 6, 1, 4])
    rates = [0.4, 1.2, 0.4, 0.1]
    log_rates = torch.tensor(rates, dtype=torch.float64).log()
    losses, right = sampled_losses(queries, table, gold, sample, log_rates)
    for row in range(5):
        own = float((queries[row] @ table[gold[row]]).detach())
        total, best = math.exp(own), True
        for entity, rate in zip(sample.tolist(), rates, strict=True):
            if entity == int(gold[row]):
                continue
            score = float((queries[row] @ table[entity]).detach())
            total, best = total + math.exp(score) / rate, best and own > score
        assert float(losses[row].detach()) == pytest.approx(math.log(total) - own, rel=1e-12)
        assert bool(right[row]) == best


def test_many_samples_have_the_sum_of_the_whole_table_and_so_its_loss():
    queries, table = random_tensors(seed=3)
    counts = np.array([50, 0, 9, 3, 1, 20, 4])
    _, batch = tensors([3, 0, 6, 1, 2])
    full, _ = EntityLinking(EntityLinkingConfig()).loss(states(queries, table), batch)
    made = EntityLinking(EntityLinkingConfig(n_sampled=200_000), setting(counts))
    torch.manual_seed(0)
    sampled, _ = made.loss(states(queries, table), batch)
    assert float(sampled.detach()) == pytest.approx(float(full.detach()), rel=0.01)


def test_entities_are_sampled_by_their_rates():
    torch.manual_seed(0)
    rates = torch.tensor([1.0, 4.0, 4.0, 10.0], dtype=torch.float64)
    counts = torch.bincount(sample_entities(rates, 20_000), minlength=4) / 20_000
    torch.testing.assert_close(counts, torch.tensor([0.1, 0.3, 0.0, 0.6]), atol=0.02, rtol=0)


def test_half_precision_losses_are_float32():
    queries, table = (each.detach().bfloat16() for each in random_tensors())
    losses, _ = full_losses(queries, table, torch.tensor([3, 1, 0, 6, 6]), 100)
    assert losses.dtype == torch.float32


def test_models_without_a_table_or_with_another_one_are_refused():
    queries, table = random_tensors()
    batch = tensors(ENTITIES)[1]
    with pytest.raises(ConfigError, match="the model has no entity table"):
        EntityLinking(EntityLinkingConfig()).loss(states(None, None), batch)
    with pytest.raises(ConfigError, match=r"the entity table is empty; lower stream\.min_count"):
        EntityLinking(EntityLinkingConfig()).loss(
            states(queries, table[:0]), tensors([-1, -1, -1, -1, -1])[1]
        )
    made = EntityLinking(EntityLinkingConfig(n_sampled=2), setting(np.ones(6, np.int64)))
    with pytest.raises(ConfigError, match="the table has 7 entities, and counts are known of 6"):
        made.loss(states(queries, table), batch)


@pytest.mark.parametrize("name", ["n_sampled", "max_scores"])
def test_wrong_settings_are_refused(name):
    with pytest.raises(ConfigError, match=f"{name}: expected at least"):
        EntityLinkingConfig(**{name: -1})
