"""Masked neighbour modelling: the loss against plain loops, its gradients, its mentions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from graph_examples import (
    Reader,
    batches,
    random_graph,
    random_table,
    sequence,
    setting,
    text_states,
)

from biograft.training.objectives import (
    IGNORED,
    VISIBLE_ENTITIES,
    WITHHELD_NEIGHBOURS,
    EdgeTable,
    MaskedNeighbour,
    MaskedNeighbourConfig,
    TypeSampler,
)

GRAPH = random_graph()
TEXT = [
    sequence([(0, 1, 5), (2, 2, 9), (4, 6, 0), (7, 7, -1), (8, 8, 2)], masked=(2, 4, 5, 6)),
    sequence([]),
    sequence([(1, 1, 5), (3, 4, 11), (9, 9, 7)], masked=(1, 3)),
]


def objective(graph=GRAPH, visibility="masked", **options):
    return MaskedNeighbour(MaskedNeighbourConfig(**options), setting(graph, visibility))


def selected_of(text, visibility):
    """The sequence, span and entity of each mention that predicts neighbours."""
    for row, example in enumerate(text):
        masked = example.token_labels["masked_tokens"] >= 0
        for first, last, entity in example.mentions.tolist():
            if entity >= 0 and (visibility == "all" or not masked[first : last + 1].all()):
                yield row, first, last, entity


def cosine(left, right):
    dot = sum(a * b for a, b in zip(left, right, strict=True))
    return dot / math.sqrt(sum(a * a for a in left) * sum(b * b for b in right))


def loops(made, text, states, negatives, visibility):
    """The losses and whether each is correct, in the order of mentions and of their neighbours."""
    config, graph, losses = made.config, made.graph, []
    counts = np.maximum(graph.counts, 1)
    table = states.table.tolist()
    for row, first, last, entity in selected_of(text, visibility):
        vector = states.read_mentions(states.final, torch.tensor([[row, first, last]]))[0].tolist()
        for true, relation, sign in zip(
            graph.neighbours[entity], graph.relations[entity], graph.signs[entity], strict=True
        ):
            if true < 0:
                continue
            projection, own = graph.projections[relation], graph.relation_vectors[relation]
            scores, corrected = [], []
            for rival in [int(true), *negatives[int(true)]]:
                left = [
                    sum(vector[i] * projection[i][j] for i in range(len(vector))) + sign * own[j]
                    for j in range(len(own))
                ]
                seen = [
                    sum(table[rival][i] * projection[i][j] for i in range(len(vector)))
                    for j in range(len(own))
                ]
                if config.form == "eq19":  # [h, s] M_Pr against the entity as it is
                    left = [sum(left[j] * row[j] for j in range(len(own))) for row in projection]
                    seen = table[rival]
                scores.append(config.mu * cosine(left, seen))
                rate = counts[rival] / counts[graph.types == graph.types[rival]].sum()
                factor = {"log_q": 1, "mu_log_q": config.mu, "none": 0}[config.correction]
                corrected.append(scores[-1] - factor * math.log(rate))
            total = sum(math.exp(score) for score in corrected)
            others = [s for s, e in zip(scores[1:], negatives[int(true)], strict=True) if e != true]
            losses.append(
                (math.log(total) - corrected[0], all(score < scores[0] for score in others))
            )
    return losses


@pytest.fixture
def negatives(monkeypatch):
    """Negatives determined by the true neighbour, known to the loops; one is itself."""
    of_each = {}
    for entity in range(20):
        same = np.flatnonzero(GRAPH.types == GRAPH.types[entity])
        rng = np.random.default_rng(entity)
        of_each[entity] = [entity, *rng.choice(same, 3).tolist()]

    def sample(self, like, points):
        assert points.shape == (len(like), 4)
        return torch.tensor([of_each[entity] for entity in like.tolist()])

    monkeypatch.setattr(TypeSampler, "sample", sample)
    return of_each


@pytest.mark.parametrize(
    ("form", "correction", "visibility", "trained", "reduction"),
    [("eq16", "log_q", "masked", False, "mean"), ("eq19", "mu_log_q", "all", True, "sequence_sum")],
)
def test_the_loss_is_that_of_plain_loops(
    negatives, form, correction, visibility, trained, reduction
):
    options = {"form": form, "correction": correction, "reduction": reduction}
    made = objective(visibility=visibility, n_negatives=4, mu=3.0, weight=1.5, **options)
    states = text_states(3, random_table(trained=trained), Reader())
    text, batch = batches(made, TEXT)
    losses = loops(made, TEXT, states, negatives, visibility)
    n_counted = len(losses) if reduction == "mean" else 3
    assert made.count(text) == n_counted
    loss, stats = made.loss(states, batch)
    wanted = sum(each for each, _ in losses) / n_counted
    assert float(loss.detach()) == pytest.approx(1.5 * wanted, rel=1e-9)
    accuracy = sum(right for _, right in losses) / len(losses)
    assert stats == {"loss": pytest.approx(wanted, rel=1e-9), "accuracy": pytest.approx(accuracy)}
    assert 0 < accuracy < 1


def test_mixed_predicts_what_is_withheld_of_visible_entities_and_all_of_the_others():
    made = objective(visibility="mixed")
    text, batch = batches(made, TEXT * 10)
    found = []
    table, read = random_table(), lambda states, mentions: torch.zeros(len(mentions), 4).double()
    edges_of = EdgeTable.edges

    def edges(self, entities, columns):
        found.append(edges_of(self, entities, columns))
        return found[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EdgeTable, "edges", edges)
        made.loss(text_states(30, table, read), batch)
    known = np.flatnonzero(text.entities >= 0)
    wanted = []
    for number, mention in enumerate(known):
        withheld = text.mention_labels[WITHHELD_NEIGHBOURS][mention]
        hidden = text.mention_labels[VISIBLE_ENTITIES][mention] == IGNORED
        for column, row in enumerate(GRAPH.neighbours[text.entities[mention]]):
            if row >= 0 and (hidden or withheld[column]):
                wanted.append((number, int(row)))
    pairs = zip(found[0].mention.tolist(), found[0].neighbour.tolist(), strict=True)
    assert sorted(pairs) == sorted(wanted)
    assert made.count(text) == len(wanted)


def test_a_table_that_is_written_is_read_again():
    """A resumed run loads its weights after the first batch was computed."""
    made, table = objective(), random_table()
    _, batch = batches(made, TEXT)

    def loss_of(objective):
        torch.manual_seed(0)
        return float(objective.loss(text_states(3, table, Reader()), batch)[0].detach())

    before = loss_of(made)
    table.copy_(3 * table.flip(0))
    assert before != loss_of(made) == pytest.approx(loss_of(objective()), rel=1e-9)


def test_negatives_are_sampled_by_their_counts_within_the_type():
    graph = random_graph(n_entities=30)
    types = TypeSampler.of(graph)
    torch.manual_seed(1)
    n_each = 20_000
    sampled = types.sample(torch.arange(30), torch.rand(30, n_each))
    assert sampled.shape == (30, n_each)
    counts, chi_square, freedom = np.maximum(graph.counts, 1), 0.0, 0
    for entity in range(30):
        same = graph.types == graph.types[entity]
        found = np.bincount(sampled[entity].numpy(), minlength=30)
        assert not found[~same].any()
        expected = n_each * counts[same] / counts[same].sum()
        chi_square += float(((found[same] - expected) ** 2 / expected).sum())
        freedom += int(same.sum()) - 1
        rate = counts[entity] / counts[same].sum()
        assert math.exp(types.log_rates[entity]) == pytest.approx(rate, rel=1e-12)
    assert chi_square < freedom + 4 * math.sqrt(2 * freedom)


def test_an_entity_without_a_type_has_only_itself_as_negative():
    graph = random_graph(n_entities=30)
    graph.types[:] = 1
    graph.types[7] = -1
    sampled = TypeSampler.of(graph).sample(torch.tensor([7, 8]), torch.rand(2, 1000))
    assert (sampled[0] == 7).all()
    assert not (sampled[1] == 7).any()
