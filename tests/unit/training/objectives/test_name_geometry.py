"""Name geometry: the loss against plain loops, the frozen copy, and what it refuses."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from graph_examples import batches, sequence, setting, text_states
from transformers import BertConfig, BertModel

from biograft.training.objectives import NameGeometry, NameGeometryConfig

TEXT = [
    sequence([(0, 1, 5), (4, 6, 0)], masked=(1, 5)),
    sequence([]),
    sequence([(2, 2, 7)], tokens=range(12)),
]
NAMES = [(0, 0, 1), (0, 4, 6), (2, 2, 2)]


def encoder(seed):
    torch.manual_seed(seed)
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    return BertModel(BertConfig(vocab_size=60, hidden_size=6, **sizes), add_pooling_layer=False)


def made(start, **options):
    return NameGeometry(NameGeometryConfig(**options), setting(encoder=start, first=2, separator=3))


def vector(model, tokens):
    """The mean state of one text alone."""
    with torch.no_grad():
        states = model.eval()(torch.tensor([tokens])).last_hidden_state[0].tolist()
    return [sum(state[k] for state in states) / len(states) for k in range(6)]


def cosine(a, b):
    length = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / length


@pytest.mark.parametrize("n", [3, 2])
def test_the_loss_is_that_of_plain_loops(n):
    start, model = encoder(0), encoder(1)
    objective = made(start, weight=2.0, max_names=n)
    text, batch = batches(objective, TEXT)
    states = text_states(3)
    states = replace(
        states, encode=lambda tokens, mask: model.eval()(tokens, mask).last_hidden_state
    )
    loss, stats = objective.loss(states, batch)
    names = []
    for row, first, last in NAMES[:n]:
        labels, tokens = TEXT[row].token_labels["masked_tokens"], TEXT[row].tokens
        inner = [int(labels[k] if labels[k] >= 0 else tokens[k]) for k in range(first, last + 1)]
        names.append([2, *inner, 3])
    total = 0.0
    for i in range(n):
        for j in range(n):
            if i != j:
                ours = cosine(vector(model, names[i]), vector(model, names[j]))
                total += (ours - cosine(vector(start, names[i]), vector(start, names[j]))) ** 2
    wanted = total / (n * (n - 1))
    assert objective.count(text) == n
    assert stats["loss"] == pytest.approx(wanted, abs=1e-6)
    assert float(loss.detach()) == pytest.approx(2 * wanted, abs=1e-6)


def test_the_copy_is_frozen_and_without_dropout():
    start = encoder(0)
    objective = made(start)
    objective.head.train()
    assert not any(part.training for part in objective.head.modules())
    assert not any(weight.requires_grad for weight in objective.head.parameters())
    before = [weight.clone() for weight in objective.head.parameters()]
    with torch.no_grad():
        for weight in start.parameters():
            weight.add_(1)
    after = objective.head.parameters()
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
