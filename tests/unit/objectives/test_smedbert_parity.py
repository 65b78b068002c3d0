"""Masked neighbours against a reference of SMedBERT's equations, in all of their readings."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from graph_examples import setting
from safetensors.torch import load_file
from torch.nn.functional import gelu, layer_norm

from biograft.objectives import (
    IGNORED,
    VISIBLE_ENTITIES,
    EntityGraph,
    MaskedNeighbour,
    MaskedNeighbourConfig,
    TensorBatch,
    TextStates,
    TypeSampler,
)

FORMS = {
    "eq16_minus_log_q": ("eq16", "log_q"),
    "eq16_minus_mu_log_q": ("eq16", "mu_log_q"),
    "eq19_minus_log_q": ("eq19", "log_q"),
    "eq19_minus_mu_log_q": ("eq19", "mu_log_q"),
    "eq16_no_correction": ("eq16", "none"),
}


@pytest.fixture
def arrays(shared_data):
    return load_file(shared_data("parity/smedbert/knowledge_layer.safetensors"))


@pytest.fixture
def expected(shared_data):
    return json.loads(shared_data("parity/smedbert/losses.json").read_text())


def reader(arrays):
    """LN(GELU(pooled W_sa)) of equation 12."""
    weight = {name.removeprefix("weight."): each for name, each in arrays.items()}

    def read(states, mentions):
        pooled = []
        for row, first, last in mentions.tolist():
            span = states[row, first : last + 1]
            weights = (span @ weight["final_pool_w"] + weight["final_pool_b"]).softmax(0)
            pooled.append(weights @ span)
        inner = gelu(torch.stack(pooled) @ weight["W_sa"])
        return layer_norm(inner, (12,), weight["ln_final_gain"], weight["ln_final_bias"], eps=1e-12)

    return read


def states(arrays):
    return TextStates(
        final=arrays["input.final_states"],
        token_scores=lambda some: some,
        table=arrays["weight.entity_embedding"],
        read_mentions=reader(arrays),
    )


def batch(arrays):
    """Mention k is of entity k; the id of a token is its position in the batch."""
    mentions = arrays["input.mentions"]
    return TensorBatch(
        tokens=torch.arange(48).view(3, 16),
        mask=arrays["input.attention_mask"],
        segments=torch.zeros(3, 16, dtype=torch.int64),
        mentions=mentions,
        entities=torch.arange(4),
        token_labels={"masked_tokens": torch.full((3, 16), IGNORED)},
        mention_labels={VISIBLE_ENTITIES: torch.full((4,), IGNORED)},
        labels={},
    )


def graph(arrays):
    """The four entities that are mentioned have neighbours, the others of the table none."""
    numpy = {name: each.detach().numpy() for name, each in arrays.items()}
    neighbours, relations = (np.full((40, 10), -1) for _ in range(2))
    neighbours[:4] = numpy["input.neighbour_entity"]
    relations[:4] = numpy["input.neighbour_relation"]
    return EntityGraph(
        neighbours=neighbours,
        relations=relations,
        signs=(neighbours >= 0).astype(np.int64),
        types=numpy["input.entity_type"],
        counts=numpy["input.entity_frequency"],
        relation_vectors=numpy["weight.relation_embedding"],
        projections=numpy["weight.relation_projection"],
    )


@pytest.fixture
def objective(arrays, monkeypatch):
    """Make the objective with the negatives of the reference instead of sampled ones."""

    def make(**options):
        made = MaskedNeighbour(MaskedNeighbourConfig(**options), setting(graph(arrays)))
        relations = arrays["input.neighbour_relation"]
        by_relation = relations[relations >= 0].argsort(stable=True)
        negatives = arrays["input.negatives"][relations >= 0][by_relation]
        monkeypatch.setattr(TypeSampler, "sample", lambda self, like, n: negatives)
        return made

    return make


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("trained", [False, True])
def test_the_neighbour_loss_as_mean_and_as_sum(arrays, expected, objective, name, trained):
    form, correction = FORMS[name]
    losses = {}
    for reduction in ("mean", "sequence_sum"):
        made = objective(form=form, correction=correction, reduction=reduction)
        arrays["weight.entity_embedding"].requires_grad_(trained)
        loss, stats = made.loss(states(arrays), batch(arrays))
        losses[reduction] = float(loss.detach())
        assert stats["loss"] == pytest.approx(losses[reduction] / 2)
    wanted = expected["neighbour_loss_mean_over_true_neighbours"][name]
    assert losses["mean"] == pytest.approx(2 * wanted, rel=1e-9)
    # the reference sums over its batch of three sequences; an update takes the mean
    assert 3 * losses["sequence_sum"] == pytest.approx(
        2 * expected["neighbour_loss_sum"][name], rel=1e-9
    )
