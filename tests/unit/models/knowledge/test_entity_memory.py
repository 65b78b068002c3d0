"""Entity memory: equal to plain loops and to the fixtures, and independent of the batch."""

import json
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings, strategies as st
from kebiolm_files import with_vocabulary
from safetensors.torch import load_file

from biograft.models import (
    EntityInputs,
    EntityMemory,
    EntityMemoryConfig,
    KnowledgeBertConfig,
    spans_of_tags,
)
from biograft.models.checkpoints import KEBIOLM, read_published

BATCHES = ("gold", "predicted", "many", "none")


@pytest.fixture
def parity(shared_data, tmp_path):
    """The model of the fixtures, and a batch: ``parity("gold", compat=True)``."""

    def load(name, *, compat, norm=True):
        folder = with_vocabulary(shared_data("parity/kebiolm"), tmp_path / "kebiolm", 200)
        converted = KEBIOLM.convert(read_published(folder), as_published=compat)
        assert not converted.left_out
        model = converted.model
        if not norm:
            model.model.knowledge.entity_memory.norm = None
        batch = load_file(folder / f"batch_{name}.safetensors")
        inputs = [batch[key] for key in ("input_ids", "attention_mask", "token_type_ids")]
        if "mention_labels" in batch:
            inputs.append(spans_of_tags(batch["mention_labels"], batch["attention_mask"], 15))
        return model.double().eval(), inputs, batch

    return load


def assert_same(found, expected, tolerance=1e-9):
    torch.testing.assert_close(found, expected.double(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", BATCHES)
def test_it_equals_the_published_code_with_its_errors(parity, shared_data, name):
    model, inputs, batch = parity(name, compat=True)
    output = model(*inputs)
    assert_same(output.text_states, batch["out.context_states"])
    assert_same(output.detection_scores, batch["out.detection_logits"])
    assert_same(output.last_hidden_state, batch["out.final_states"])
    assert_same(output.logits, batch["out.token_logits"], 1e-5)
    table = model.model.entity_table.weight
    layer_inputs = EntityInputs(output.text_states, inputs[1], table, output.mentions)
    fused = model.model.knowledge.entity_memory(layer_inputs).states
    assert_same(fused, batch["out.fused_states"])
    spans = json.loads(shared_data("parity/kebiolm/expected.json").read_text())[name]
    spans = spans.get("mention_spans_first_last") or [[] for _ in batch["input_ids"]]
    expected = [[k, *span] for k, some in enumerate(spans) for span in some[:15]]
    assert output.mentions.tolist() == expected
    if "out.linking_logits" in batch:
        scores = output.queries @ model.model.entity_table.weight.T
        counts = output.mentions[:, 0].bincount(minlength=len(spans))
        own = [batch["out.linking_logits"][k, :n] for k, n in enumerate(counts)]
        assert_same(scores, torch.cat(own))


@torch.no_grad()
def by_loops(layer, table, states, mentions):
    """Equations (2) to (4), an entity and a token at a time."""
    states = states.clone()
    before = states.clone()
    for sequence, first, last in mentions.tolist():
        ends = torch.cat([before[sequence, first], before[sequence, last]])
        query = layer.mention_to_entity.weight @ ends + layer.mention_to_entity.bias
        scores = [float(query @ row) for row in table]
        near = sorted(range(len(scores)), key=lambda row: -scores[row])[: layer.n_nearest]
        powers = {row: math.exp(scores[row] - max(scores)) for row in near}
        mixed = sum(power / sum(powers.values()) * table[row] for row, power in powers.items())
        for token in range(first, last + 1):
            added = layer.entity_to_token.weight @ mixed + layer.entity_to_token.bias
            states[sequence, token] = before[sequence, token] + added
    return states


MENTIONS = torch.tensor([[0, 1, 3], [0, 4, 4], [2, 2, 7]])


def test_it_is_equal_to_plain_loops(small_model):
    model = small_model().model
    layer, table = model.knowledge.entity_memory, model.entity_table.weight
    states = torch.randn(3, 8, 16, dtype=torch.double, generator=torch.Generator().manual_seed(4))
    found = layer(EntityInputs(states, torch.ones(3, 8), table, MENTIONS))
    assert_same(found.states, by_loops(layer, table, states, MENTIONS))
    assert torch.equal(found.states[1], states[1])


def test_no_mention_still_gives_every_weight_a_gradient(small_model):
    """Ranks of a distributed run must agree on which weights have one."""
    model = small_model()
    output = model(torch.randint(5, 60, (2, 8)), mentions=torch.zeros(0, 3, dtype=torch.long))
    (output.logits.sum() + output.queries.sum() + output.detection_scores.sum()).backward()
    assert all(weight.grad is not None for weight in model.parameters())


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_the_result_does_not_depend_on_the_rest_of_the_batch(data):
    """A sequence alone, unpadded, has the same result as in a batch; mentions detected or given."""
    torch.manual_seed(0)
    config = KnowledgeBertConfig(
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        n_entities=40,
        entity_dim=4,
    )
    layer = EntityMemory(EntityMemoryConfig(after=1, n_nearest=3), config).double().eval()
    table = torch.randn(40, 4, dtype=torch.double)
    seed = data.draw(st.integers(0, 10_000))
    lengths = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
    rng = torch.Generator().manual_seed(seed)
    width = max(lengths) + data.draw(st.integers(0, 3))
    states = torch.randn(len(lengths), width, 8, dtype=torch.double, generator=rng) * 3
    mask = (torch.arange(width) < torch.tensor(lengths)[:, None]).long()
    together = layer(EntityInputs(states, mask, table))
    for row, length in enumerate(lengths):
        own = EntityInputs(states[row : row + 1, :length], mask[row : row + 1, :length], table)
        alone = layer(own)
        assert_same(together.states[row, :length], alone.states[0])
        mine = together.mentions[:, 0] == row
        assert together.mentions[mine, 1:].tolist() == alone.mentions[:, 1:].tolist()
        assert_same(together.queries[mine], alone.queries)
        given_them = layer(replace(own, mentions=alone.mentions))
        assert torch.equal(given_them.states, alone.states)
