"""ERNIE's knowledgeable encoder: equal to its equations, written out token by token."""

import math

import pytest
import torch

from biograft.errors import ConfigError
from biograft.models import KnowledgeBertConfig, KnowledgeBertModel

WIDTH, DIM, INNER, HEADS, LAYERS = 6, 4, 5, 2, 3
MENTIONS = torch.tensor([[0, 1, 3], [0, 4, 4], [1, 1, 2], [2, 2, 7]])


def make(after=1, **options):
    """Make a model of large random weights."""
    config = KnowledgeBertConfig(
        vocab_size=30,
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=INNER,
        n_entities=20,
        entity_dim=DIM,
        knowledge_layers={"entity_fusion": {"after": after, "n_heads": HEADS, **options}},
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = KnowledgeBertModel(config).double().eval()
        for weight in model.parameters():
            torch.nn.init.normal_(weight, std=0.5)
    return model


def tokens(n_sequences=3, length=8):
    return torch.randint(30, (n_sequences, length), generator=torch.Generator().manual_seed(4))


def gelu(x):
    return x * (1 + math.erf(x / math.sqrt(2))) / 2


def linear(weights, name, x):
    """Apply a linear layer, a number at a time."""
    bias = weights.get(f"{name}.bias") or [0.0] * len(weights[f"{name}.weight"])
    rows = zip(weights[f"{name}.weight"], bias, strict=True)
    return [b + sum(w * each for w, each in zip(row, x, strict=True)) for row, b in rows]


def norm(weights, name, x):
    mean = sum(x) / len(x)
    deviation = math.sqrt(sum((each - mean) ** 2 for each in x) / len(x) + 1e-12)
    scale = zip(x, weights[f"{name}.weight"], weights[f"{name}.bias"], strict=True)
    return [(each - mean) / deviation * w + b for each, w, b in scale]


def plus(x, y):
    return [a + b for a, b in zip(x, y, strict=True)]


def attend(weights, name, states):
    """Compute a self-attention with its residual and norm, a head and a state at a time."""
    queries, keys, values = (
        [linear(weights, f"{name}.self.{part}", x) for x in states]
        for part in ("query", "key", "value")
    )
    size = len(queries[0]) // HEADS
    after = []
    for query, state in zip(queries, states, strict=True):
        mixed = []
        for head in range(HEADS):
            part = slice(head * size, (head + 1) * size)
            scores = [
                sum(a * b for a, b in zip(query[part], key[part], strict=True)) / math.sqrt(size)
                for key in keys
            ]
            highest = max(scores)
            shares = [math.exp(score - highest) for score in scores]
            for n in range(*part.indices(len(query))):
                total = sum(share * value[n] for share, value in zip(shares, values, strict=True))
                mixed.append(total / sum(shares))
        mixed = plus(linear(weights, f"{name}.output.dense", mixed), state)
        after.append(norm(weights, f"{name}.output.LayerNorm", mixed))
    return after


def by_loops(model, ids, mentions, entities, after):
    """Equations of the paper: T-layers of tokens alone, then K-layers of tokens and entities."""
    weights = {name: weight.tolist() for name, weight in model.named_parameters()}
    result = []
    for sequence, embedded in enumerate(model.bert.embeddings(input_ids=ids).tolist()):
        states = embedded
        aligned = {
            int(first): weights["entity_table.weight"][row]
            for (owner, first, _), row in zip(mentions.tolist(), entities.tolist(), strict=True)
            if owner == sequence and row >= 0
        }
        for number in range(LAYERS):
            bert, fused = f"bert.encoder.layer.{number}", ""
            states = attend(weights, f"{bert}.attention", states)
            if number >= after and aligned:
                fused = f"knowledge.entity_fusion.layers.{number - after}"
                attended = attend(weights, f"{fused}.attention", list(aligned.values()))
                aligned = dict(zip(aligned, attended, strict=True))
            for position, state in enumerate(states):
                inner = linear(weights, f"{bert}.intermediate.dense", state)
                if fused and position in aligned:
                    inner = plus(inner, linear(weights, f"{fused}.infuse", aligned[position]))
                inner = [gelu(x) for x in inner]
                if fused and position in aligned and number < LAYERS - 1:
                    back = plus(linear(weights, f"{fused}.back", inner), aligned[position])
                    aligned[position] = norm(weights, f"{fused}.norm", back)
                outer = plus(linear(weights, f"{bert}.output.dense", inner), state)
                states[position] = norm(weights, f"{bert}.output.LayerNorm", outer)
        result.append(states)
    return torch.tensor(result, dtype=torch.double)


@pytest.mark.parametrize("after", [0, 1, 2])
@pytest.mark.parametrize("rows", [[0, 1, 2, 3], [4, -1, 5, 6], [-1, -1, -1, -1], [19, 8, -1, 0]])
def test_it_is_equal_to_plain_loops(rows, after):
    model, entities = make(after), torch.tensor(rows)
    ours = model(tokens(), mentions=MENTIONS, entities=entities).last_hidden_state
    expected = by_loops(model, tokens(), MENTIONS, entities, after)
    torch.testing.assert_close(ours, expected, rtol=1e-9, atol=1e-9)


def test_gradients_reach_every_weight_also_without_a_linked_mention():
    """Ranks of a distributed run must agree on which weights have one."""
    model = make()
    layer = model.knowledge["entity_fusion"]
    for entities in (torch.arange(4), torch.full((4,), -1)):
        model.zero_grad()
        states = model(tokens(), mentions=MENTIONS, entities=entities).last_hidden_state
        states[..., 0].square().sum().backward()
        linked = bool((entities >= 0).any())
        for name, weight in layer.named_parameters():
            nothing = "key.bias" in name  # changes no attention
            assert nothing or bool(weight.grad.abs().sum() > 1e-12) is linked, name


def test_checkpointing_changes_no_gradient():
    gradients = []
    for checkpointed in (False, True):
        model = make().train()
        for module in model.modules():
            module.p = 0.0 if isinstance(module, torch.nn.Dropout) else getattr(module, "p", None)
        if checkpointed:
            model.activation_checkpointing_enable({"use_reentrant": False})
        model(tokens(), mentions=MENTIONS, entities=torch.arange(4)).last_hidden_state[
            ..., 0
        ].square().sum().backward()
        gradients.append([p.grad for p in model.parameters() if p.grad is not None])
    torch.testing.assert_close(*gradients)


def test_settings_that_do_not_fit_are_refused():
    with pytest.raises(ConfigError, match=r"n_heads: expected a divisor of 4, .* found 3"):
        make(n_heads=3)
    with pytest.raises(ConfigError, match=r"entity_fusion: it runs all layers .* neighbour_att"):
        KnowledgeBertConfig(
            num_hidden_layers=2,
            knowledge_layers={"entity_fusion": {"after": 1}, "neighbour_attention": {"after": 1}},
        )
