"""Entity fusion: equal to its equation; an entity changes only the first token of its mention."""

import math

import pytest
import torch

from biograft.models import EntityFusion, EntityFusionConfig, EntityInputs, KnowledgeBertConfig

MENTIONS = torch.tensor([[0, 1, 3], [0, 4, 4], [1, 0, 2], [2, 2, 7]])


def make(n_entities=20, width=6, dim=4, **options):
    """Make a layer of large random weights, and a table."""
    model_config = KnowledgeBertConfig(
        hidden_size=width,
        num_hidden_layers=2,
        num_attention_heads=2,
        n_entities=n_entities,
        entity_dim=dim,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layer = EntityFusion(EntityFusionConfig(after=1, **options), model_config).double().eval()
        for weight in layer.parameters():
            torch.nn.init.normal_(weight, std=0.5)
        table = torch.randn(n_entities, dim, dtype=torch.double)
    return layer, table


def random_states(n_sequences=3, length=8, width=6, seed=4):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(n_sequences, length, width, dtype=torch.double, generator=rng)


def fuse(layer, table, states, mentions=MENTIONS, entities=None):
    entities = torch.arange(len(mentions)) if entities is None else entities
    mask = torch.ones(states.shape[:2])
    return layer(EntityInputs(states, mask, table, mentions, entities)).states


def by_loops(layer, table, states, mentions, entities):
    """h + GELU(h W_t + e W_e + b) W_o + b_o, a mention and a number at a time."""
    weights = {name: weight.tolist() for name, weight in layer.named_parameters()}
    after = states.clone()
    for (sequence, first, _), row in zip(mentions.tolist(), entities.tolist(), strict=True):
        if row < 0:
            continue
        h, e = states[sequence, first].tolist(), table[row].tolist()
        inner = []
        for n, bias in enumerate(weights["token.bias"]):
            x = bias + dot(h, weights["token.weight"][n]) + dot(e, weights["entity.weight"][n])
            inner.append(x * (1 + math.erf(x / math.sqrt(2))) / 2)
        for n, bias in enumerate(weights["infuse.bias"]):
            after[sequence, first, n] = h[n] + dot(inner, weights["infuse.weight"][n]) + bias
    return after


def dot(one, two):
    return sum(a * b for a, b in zip(one, two, strict=True))


def same(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rows", [[0, 1, 2, 3], [4, -1, 5, 6], [-1, -1, -1, -1], [19, 8, 19, 0]])
def test_it_is_equal_to_plain_loops(rows):
    layer, table = make()
    states, entities = random_states(), torch.tensor(rows)
    expected = by_loops(layer, table, states, MENTIONS, entities)
    same(fuse(layer, table, states, MENTIONS, entities), expected)


def test_gradients_reach_every_weight_also_without_a_linked_mention():
    """Ranks of a distributed run must agree on which weights have one."""
    layer, table = make()
    for entities in (torch.arange(4), torch.full((4,), -1)):
        layer.zero_grad()
        fuse(layer, table, random_states(), entities=entities).square().sum().backward()
        linked = bool((entities >= 0).any())
        assert all(bool(weight.grad.any()) is linked for weight in layer.parameters())
