"""Neighbour attention: equal to the paper's equations, and independent of the batch."""

import math

import torch
from torch.nn.functional import gelu, layer_norm

from biograft.models import (
    EntityInputs,
    KnowledgeBertConfig,
    NeighbourAttention,
    NeighbourAttentionConfig,
)


def make(n_entities=20, width=8, dim=4, k=5, **options):
    """Make a layer of large random weights, with random neighbours and types."""
    model_config = KnowledgeBertConfig(
        hidden_size=width,
        num_hidden_layers=2,
        num_attention_heads=2,
        n_entities=n_entities,
        entity_dim=dim,
        layer_norm_eps=1e-12,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = NeighbourAttentionConfig(after=1, n_neighbours=k, **options)
        layer = NeighbourAttention(config, model_config).double().eval()
        for name, weight in layer.named_parameters():
            if "norm" not in name:
                torch.nn.init.normal_(weight, std=0.5)
        layer.neighbours.copy_(torch.randint(0, n_entities, (n_entities, k)))
        counts = torch.randint(0, k + 1, (n_entities, 1))
        layer.neighbours.masked_fill_(torch.arange(k) >= counts, -1)
        layer.types.copy_(torch.randint(-1, 3, (n_entities,)))
        table = torch.randn(n_entities, dim, dtype=torch.double)
    return layer, table


def same(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def norm(values, given):
    return layer_norm(values, values.shape, given.weight, given.bias, given.eps)


@torch.no_grad()
def by_loops(layer, table, states, mentions, entities):
    """Equations (2) to (11), a mention, a neighbour and a token at a time."""
    after, dim = states.clone(), table.shape[1]
    for (sequence, first, last), entity in zip(mentions.tolist(), entities.tolist(), strict=True):
        rows = [] if entity < 0 else [r for r in layer.neighbours[entity].tolist() if r >= 0]
        if not rows:
            continue
        span = states[sequence, first : last + 1]
        pooled = (layer.read.pool.score(span).softmax(0) * span).sum(0)
        h = norm(gelu(layer.read.project(pooled)), layer.read.norm)
        types = [int(layer.types[row]) for row in rows]
        scores = {}
        for kind in set(types):
            h_t = sum(table[row] for row, own in zip(rows, types, strict=True) if own == kind)
            inner = torch.tanh(layer.mention_type(h) + layer.neighbour_type(h_t))
            scores[kind] = float(layer.type_score(inner))
        total = sum(math.exp(score) for score in scores.values())
        logits = []
        for row, kind in zip(rows, types, strict=True):
            product = layer.query(h) @ layer.key(table[row]) / math.sqrt(dim)
            logits.append(float(product) * math.exp(scores[kind]) / total)
        weights = torch.tensor(logits, dtype=torch.double).softmax(0)
        mixed = sum(w * layer.value(table[row]) for w, row in zip(weights, rows, strict=True))
        node = norm(mixed + layer.outer(gelu(layer.inner(mixed))), layer.node_norm)
        back = layer.back(gelu(layer.mix(torch.cat([h, node]))))
        infused = norm(back, layer.back_norm)
        for token in range(first, last + 1):
            own = states[sequence, token]
            gate = torch.tanh(layer.gate(torch.cat([own, infused])))
            after[sequence, token] = own + gelu(layer.infuse(torch.cat([own, gate * infused])))
    return after


MENTIONS = torch.tensor([[0, 1, 3], [0, 4, 4], [1, 0, 2], [2, 2, 7]])


def test_it_is_equal_to_plain_loops():
    layer, table = make()
    states = torch.randn(3, 8, 8, dtype=torch.double, generator=torch.Generator().manual_seed(4))
    for entities in torch.tensor([[0, 1, 2, 3], [4, -1, 5, 6], [-1, -1, -1, -1], [7, 8, 7, 9]]):
        found = layer(EntityInputs(states, torch.ones(3, 8), table, MENTIONS, entities))
        same(found.states, by_loops(layer, table, states, MENTIONS, entities))


def test_without_parts_of_the_attention():
    layer, table = make(node_attention=False)
    assert (layer.neighbours >= 0).sum(1).max() > 1
    states = torch.randn(3, 8, 8, dtype=torch.double)
    found = layer(EntityInputs(states, torch.ones(3, 8), table, MENTIONS, torch.arange(4)))
    exists = layer.neighbours[:4] >= 0
    same(found.neighbour_weights, exists / exists.sum(1, keepdim=True).clamp_min(1).double())
    plain, _ = make(type_attention=False)
    whole, _ = make()
    some = [
        each(EntityInputs(states, torch.ones(3, 8), table, MENTIONS, torch.arange(4)))
        for each in (plain, whole)
    ]
    assert not torch.equal(some[0].neighbour_weights, some[1].neighbour_weights)


def test_withheld_neighbours_are_as_if_the_entity_had_none_of_them():
    layer, table = make()
    states = torch.randn(3, 8, 8, dtype=torch.double, generator=torch.Generator().manual_seed(4))
    layer.neighbours[:4] = torch.tensor([[7, 2, -1, -1, -1], [5, 6, 9, 8, 5]] * 2)
    withheld = torch.tensor([[1, 0, 0, 0, 0], [0, 1, 0, 1, 0], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]])
    entities = torch.arange(4)
    found = layer(EntityInputs(states, torch.ones(3, 8), table, MENTIONS, entities, withheld))
    layer.neighbours[:4] = torch.tensor(
        [[2, -1, -1, -1, -1], [5, 9, 5, -1, -1], [-1, -1, -1, -1, -1], [5, 6, 9, 8, 5]]
    )
    same(
        found.states,
        layer(EntityInputs(states, torch.ones(3, 8), table, MENTIONS, entities)).states,
    )
    assert not found.neighbour_weights[withheld == 1].any()
    assert torch.equal(found.states[1], states[1])


def test_gradients_reach_every_weight_also_without_a_linked_mention():
    """Ranks of a distributed run must agree on which weights have one."""
    layer, table = make()
    states = torch.randn(3, 8, 8, dtype=torch.double)
    for entities in (torch.arange(4), torch.full((4,), -1)):
        layer.zero_grad()
        inputs = EntityInputs(states, torch.ones(3, 8), table, MENTIONS, entities)
        layer(inputs).states.sum().backward()
        assert all(weight.grad is not None for weight in layer.parameters())
    layer.zero_grad()
    layer.neighbours[:4, :2] = torch.tensor([[2, 3]] * 4)
    inputs = EntityInputs(states, torch.ones(3, 8), table, MENTIONS, torch.arange(4))
    layer(inputs).states.sum().backward()
    without = [name for name, weight in layer.named_parameters() if not weight.grad.any()]
    assert without in ([], ["read.pool.score.bias"])  # softmax ignores it


def test_the_best_neighbours_keep_all_their_edges():
    layer, _ = make(n_entities=3, k=4)
    layer.neighbours.copy_(torch.tensor([[1, 1, 2, 0], [2, 0, 0, 1], [-1, -1, -1, -1]]))
    layer.keep_neighbours(2)
    assert layer.neighbours.tolist() == [[1, 1, 2], [2, 0, 0], [-1, -1, -1]]
    layer.keep_neighbours(1)
    assert layer.neighbours.tolist() == [[1, 1], [2, -1], [-1, -1]]
