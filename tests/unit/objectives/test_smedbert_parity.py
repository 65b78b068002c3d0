"""SMedBERT's two losses against a reference of the paper's equations, in all of their readings."""

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
    MaskedMention,
    MaskedMentionConfig,
    MaskedNeighbour,
    MaskedNeighbourConfig,
    TensorBatch,
    TextStates,
    TypeSampler,
)
from biograft.objectives.masked_neighbour import first_column_losses

EXACT = {"rtol": 1e-9, "atol": 1e-12}
FORMS = {
    "eq16_minus_log_q": ("eq16", "log_q"),
    "eq16_minus_mu_log_q": ("eq16", "mu_log_q"),
    "eq19_minus_log_q": ("eq19", "log_q"),
    "eq19_minus_mu_log_q": ("eq19", "mu_log_q"),
    "eq16_no_correction": ("eq16", "none"),
}
each_form = pytest.mark.parametrize("name", FORMS)


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


def batch(arrays, *, visible):
    """Mention k is of entity k; the id of a token is its position in the batch."""
    mentions = arrays["input.mentions"]
    labels = torch.arange(4) if visible else torch.full((4,), IGNORED)
    return TensorBatch(
        tokens=torch.arange(48).view(3, 16),
        mask=arrays["input.attention_mask"],
        segments=torch.zeros(3, 16, dtype=torch.int64),
        mentions=mentions,
        entities=torch.arange(4),
        token_labels={"masked_tokens": torch.full((3, 16), IGNORED)},
        mention_labels={VISIBLE_ENTITIES: labels},
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


def by_relation(arrays, values):
    """Select true neighbours from (mentions, 10, ...), in the order of edges."""
    relations = arrays["input.neighbour_relation"]
    order = relations[relations >= 0].argsort(stable=True)
    return values[relations >= 0][order]


@pytest.fixture
def objective(arrays, monkeypatch):
    """Make the objective with the negatives of the reference instead of sampled ones."""

    def make(**options):
        made = MaskedNeighbour(MaskedNeighbourConfig(**options), setting(graph(arrays)))
        negatives = by_relation(arrays, arrays["input.negatives"])
        monkeypatch.setattr(TypeSampler, "sample", lambda self, like, n: negatives)
        return made

    return make


def test_relation_products_equal_those_of_the_slow_form(arrays, objective):
    made = objective()
    torch.testing.assert_close(made.head.forms[:, :, :-1].detach(), arrays["out.M_Pr"], **EXACT)
    edges = made._edges.edges(torch.arange(4))
    left, squares = made.head.read(arrays["out.final_mention"], edges)
    columns = torch.cat(
        [edges.neighbour[:, None], by_relation(arrays, arrays["input.negatives"])], 1
    )
    entities = arrays["weight.entity_embedding"][columns]
    products = (entities * left[:, None]).sum(2)
    for name in ("dot_slow", "dot_fast"):
        torch.testing.assert_close(products, by_relation(arrays, arrays[f"out.{name}"]), **EXACT)
    lengths = by_relation(arrays, arrays["out.norm_left"])[:, 0]
    torch.testing.assert_close(squares.sqrt(), lengths, **EXACT)


def test_sampling_rates_are_those_of_the_reference(arrays):
    rates = TypeSampler.of(graph(arrays)).log_rates.exp()
    torch.testing.assert_close(rates, arrays["out.sampling_probability"], **EXACT)


@each_form
def test_scores_and_losses_of_every_true_neighbour(arrays, objective, name):
    form, correction = FORMS[name]
    made = objective(form=form, correction=correction)
    edges = made._edges.edges(torch.arange(4))
    sampled = made._types.sample(edges.neighbour, 10)
    columns = torch.cat([edges.neighbour[:, None], sampled], 1)
    vectors, table = arrays["out.final_mention"], arrays["weight.entity_embedding"]
    scores = 10 * made._scorer(vectors, table, edges, columns)
    torch.testing.assert_close(scores, by_relation(arrays, arrays[f"out.score_{form}"]), **EXACT)
    found = first_column_losses(scores, made._correction * made._types.log_rates[columns])
    wanted = by_relation(arrays, arrays[f"out.neighbour_loss_{name}"])
    torch.testing.assert_close(found, wanted, **EXACT)


@each_form
@pytest.mark.parametrize("trained", [False, True])
def test_the_neighbour_loss_as_mean_and_as_sum(arrays, expected, objective, name, trained):
    form, correction = FORMS[name]
    losses = {}
    for reduction in ("mean", "sequence_sum"):
        made = objective(form=form, correction=correction, reduction=reduction)
        arrays["weight.entity_embedding"].requires_grad_(trained)
        loss, stats = made.loss(states(arrays), batch(arrays, visible=False))
        losses[reduction] = float(loss.detach())
        assert stats["loss"] == pytest.approx(losses[reduction] / 2)
    wanted = expected["neighbour_loss_mean_over_true_neighbours"][name]
    assert losses["mean"] == pytest.approx(2 * wanted, rel=1e-9)
    # the reference sums over its batch of three sequences; an update takes the mean
    assert 3 * losses["sequence_sum"] == pytest.approx(
        2 * expected["neighbour_loss_sum"][name], rel=1e-9
    )


@pytest.mark.parametrize("reduction", ["mse", "mean", "sequence_sum"])
def test_the_mention_loss_as_mean_and_as_sum(arrays, expected, reduction):
    vectors = arrays["input.input_embeddings"].flatten(0, 1)
    config = MaskedMentionConfig(reduction=reduction)
    made = MaskedMention(config, setting(embeddings=vectors))
    loss, stats = made.loss(states(arrays), batch(arrays, visible=True))
    mean = expected["mention_loss_mean_over_mentions"]
    wanted = {
        "mse": mean / arrays["out.final_mention"].shape[1],
        "mean": mean,
        "sequence_sum": expected["mention_loss_sum"] / 3,
    }[reduction]
    assert stats["loss"] == pytest.approx(wanted, rel=1e-9)
    assert float(loss.detach()) == pytest.approx(4 * wanted, rel=1e-9)


def test_mentions_are_read_as_in_the_reference(arrays):
    """Check the reader of this file, a stand-in for the model's, against the reference."""
    read, mentions = reader(arrays), arrays["input.mentions"]
    for given, name in (("final_states", "final_mention"), ("input_embeddings", "mention_target")):
        found = read(arrays[f"input.{given}"], mentions)
        torch.testing.assert_close(found, arrays[f"out.{name}"], **EXACT)
