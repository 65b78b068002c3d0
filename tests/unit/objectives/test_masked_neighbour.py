"""The loss of neighbours against plain loops, its gradients, and who is asked."""

from __future__ import annotations

import math
from dataclasses import replace

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
    told,
)

from biograft.errors import ConfigError
from biograft.objectives.configs import MaskedNeighbourConfig
from biograft.objectives.masked_neighbour import MaskedNeighbour, TypeSampler

GRAPH = random_graph()
TEXT = [
    sequence([(0, 1, 5), (2, 2, 9), (4, 6, 0), (7, 7, -1), (8, 8, 2)], hidden=(2, 4, 5, 6)),
    sequence([]),
    sequence([(1, 1, 5), (3, 4, 11), (9, 9, 7)], hidden=(1, 3)),
]


def made_of(graph=GRAPH, shown="hidden", **options):
    return MaskedNeighbour(MaskedNeighbourConfig(**options), setting(graph, shown))


def asked_of(text, shown):
    """The sequence, span and entity of each mention that is asked for its neighbours."""
    for row, example in enumerate(text):
        hidden = example.token_labels["masked_tokens"] >= 0
        for first, last, entity in example.mentions.tolist():
            if entity >= 0 and (shown == "all" or not hidden[first : last + 1].all()):
                yield row, first, last, entity


def cosine(left, right):
    dot = sum(a * b for a, b in zip(left, right, strict=True))
    return dot / math.sqrt(sum(a * a for a in left) * sum(b * b for b in right))


def loops(made, text, states, dealt, shown):
    """The losses and whether each is right, in the order of mentions and of their neighbours."""
    config, graph, losses = made.config, made.graph, []
    counts = np.maximum(graph.counts, 1)
    table = states.table.tolist()
    for row, first, last, entity in asked_of(text, shown):
        vector = states.read_mentions(states.final, torch.tensor([[row, first, last]]))[0].tolist()
        for true, relation, sign in zip(
            graph.neighbours[entity], graph.relations[entity], graph.signs[entity], strict=True
        ):
            if true < 0:
                continue
            projection, own = graph.projections[relation], graph.relation_vectors[relation]
            scores, corrected = [], []
            for rival in [int(true), *dealt[int(true)]]:
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
            others = [s for s, e in zip(scores[1:], dealt[int(true)], strict=True) if e != true]
            losses.append(
                (math.log(total) - corrected[0], all(score < scores[0] for score in others))
            )
    return losses


@pytest.fixture
def dealt(monkeypatch):
    """Negatives that follow from the true neighbour, for loops to know them; one is itself."""
    of_each = {}
    for entity in range(20):
        same = np.flatnonzero(GRAPH.types == GRAPH.types[entity])
        rng = np.random.default_rng(entity)
        of_each[entity] = [entity, *rng.choice(same, 3).tolist()]

    def sample(self, like, n):
        assert n == 4
        return torch.tensor([of_each[entity] for entity in like.tolist()])

    monkeypatch.setattr(TypeSampler, "draw", rng)
    return of_each


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("shown", ["hidden", "all"])
@pytest.mark.parametrize(("form", "correction"), [("eq16", "log_q"), ("eq19", "mu_log_q")])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_loss_is_that_of_plain_loops(dealt, form, correction, shown, learns, reduction):
    options = {"form": form, "correction": correction, "reduction": reduction}
    made = made_of(shown=shown, n_negatives=4, mu=3.0, weight=1.5, **options)
    states = text_states(3, random_table(learns=learns), Reader())
    text, batch = batches(made, TEXT)
    losses = loops(made, TEXT, states, dealt, shown)
    n_counted = len(losses) if reduction == "mean" else 3
    assert made.count(text) == n_counted
    loss, stats = made.loss(states, batch)
    wanted = sum(each for each, _ in losses) / n_counted
    assert float(loss.detach()) == pytest.approx(1.5 * wanted, rel=1e-9)
    accuracy = sum(right for _, right in losses) / len(losses)
    assert stats == {"loss": pytest.approx(wanted, rel=1e-9), "accuracy": pytest.approx(accuracy)}
    assert 0 < accuracy < 1


def test_mentions_that_are_told_are_not_asked():
    made = made_of()
    text, _ = batches(made, TEXT)
    assert told(text) == [None, 9, 0, None, None, 5, None, None]
    assert made.count(text) == int((GRAPH.neighbours[[5, 2, 11, 7]] >= 0).sum())


def test_gradients_reach_states_reader_and_a_table_that_learns_and_no_projection():
    made, reader = made_of(), Reader()
    states = text_states(3, random_table(learns=True), reader)
    made.loss(states, batches(made, TEXT)[1])[0].backward()
    asked = {(row, token) for row, first, last, _ in asked_of(TEXT, "hidden")
             for token in range(first, last + 1)}  # fmt: skip
    reached = {tuple(place) for place in states.final.grad.abs().sum(2).nonzero().tolist()}
    assert reached == asked
    assert reader.weight.grad.any()
    assert states.table.grad.any()
    assert [parameter.requires_grad for parameter in made.head.parameters()] == [False]
    assert made.head.forms.grad is None


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("entities", [[], [-1], [0]], ids=["no mention", "unknown", "alone"])
def test_without_an_edge_the_loss_is_zero_and_so_are_the_gradients(entities, learns):
    made, reader = made_of(), Reader()
    states = text_states(1, random_table(learns=learns), reader)
    text, batch = batches(made, [sequence([(1, 2, entity) for entity in entities])])
    assert made.count(text) == 0
    loss, stats = made.loss(states, batch)
    loss.backward()
    assert stats == {"loss": 0.0, "accuracy": 0.0}
    for learning in [states.final, reader.weight, *([states.table] if learns else [])]:
        assert learning.grad is not None
        assert not learning.grad.any()


def test_a_graph_without_any_edge_or_relation_gives_zero():
    bare = replace(
        GRAPH,
        neighbours=np.full((20, 5), -1), relations=np.full((20, 5), -1),
        relation_vectors=np.zeros((0, 3)), projections=np.zeros((0, 4, 3)),
    )  # fmt: skip
    made = made_of(bare)
    loss, _ = made.loss(text_states(3, random_table(), Reader()), batches(made, TEXT)[1])
    assert float(loss.detach()) == 0


def test_missing_and_foreign_pieces_are_refused():
    with pytest.raises(ConfigError, match=r"neighbours of entities are known; add neighbour_att"):
        made_of(graph=None)
    made = made_of()
    _, batch = batches(made, TEXT)
    with pytest.raises(ConfigError, match="masked_neighbour: the model has no table of entities"):
        made.loss(text_states(3, None, Reader()), batch)
    with pytest.raises(ConfigError, match="masked_neighbour: the model does not read mentions"):
        made.loss(text_states(3, random_table()), batch)
    with pytest.raises(ConfigError, match="has 19 entities of 4 dimensions, and the graph 20 of 4"):
        made.loss(text_states(3, random_table(19), Reader()), batch)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("n_negatives", 0, "n_negatives: expected at least 1, found 0"),
        ("mu", 0.0, "mu: expected a number above 0, found 0.0"),
        ("form", "eq61", "form: expected one of eq16, eq19, found 'eq61'"),
        ("correction", "q", "correction: expected one of log_q, mu_log_q, none, found 'q'"),
        ("reduction", "printed", "reduction: expected one of mean, sum, found 'printed'"),
    ],
)
def test_wrong_settings_are_refused(name, value, message):
    with pytest.raises(ConfigError, match=message):
        MaskedNeighbourConfig(**{name: value})
