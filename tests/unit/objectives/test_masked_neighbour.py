"""Masked neighbour modelling: the loss against plain loops, its gradients, its mentions."""

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
    setting as setting_of,
    text_states,
    visible,
)
from torch.nn.functional import cosine_similarity

from biograft.errors import ConfigError
from biograft.objectives import (
    IGNORED,
    VISIBLE_ENTITIES,
    WITHHELD_NEIGHBOURS,
    EdgeTable,
    MaskedNeighbour,
    MaskedNeighbourConfig,
    RelationProducts,
    TypeSampler,
)
from biograft.objectives.masked_neighbour import Scorer, first_column_wins

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

    def sample(self, like, n):
        assert n == 4
        return torch.tensor([of_each[entity] for entity in like.tolist()])

    monkeypatch.setattr(TypeSampler, "sample", sample)
    return of_each


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("visibility", ["masked", "all"])
@pytest.mark.parametrize(("form", "correction"), [("eq16", "log_q"), ("eq19", "mu_log_q")])
@pytest.mark.parametrize("reduction", ["mean", "sequence_sum"])
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


def test_visible_mentions_predict_no_neighbours():
    made = objective()
    text, _ = batches(made, TEXT)
    assert visible(text) == [None, 9, 0, None, None, 5, None, None]
    assert made.count(text) == int((GRAPH.neighbours[[5, 2, 11, 7]] >= 0).sum())


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


def test_gradients_reach_states_reader_and_a_trained_table_but_no_projection():
    made, reader = objective(), Reader()
    states = text_states(3, random_table(trained=True), reader)
    made.loss(states, batches(made, TEXT)[1])[0].backward()
    selected = {(row, token) for row, first, last, _ in selected_of(TEXT, "masked")
             for token in range(first, last + 1)}  # fmt: skip
    reached = {tuple(position) for position in states.final.grad.abs().sum(2).nonzero().tolist()}
    assert reached == selected
    assert reader.weight.grad.any()
    assert states.table.grad.any()
    assert [parameter.requires_grad for parameter in made.head.parameters()] == [False]
    assert made.head.forms.grad is None


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("entities", [[], [-1], [0]], ids=["no mention", "unknown", "alone"])
def test_without_an_edge_loss_and_gradients_are_zero(entities, trained):
    made, reader = objective(), Reader()
    states = text_states(1, random_table(trained=trained), reader)
    text, batch = batches(made, [sequence([(1, 2, entity) for entity in entities])])
    assert made.count(text) == 0
    loss, stats = made.loss(states, batch)
    loss.backward()
    assert stats == {"loss": 0.0, "accuracy": 0.0}
    for learning in [states.final, reader.weight, *([states.table] if trained else [])]:
        assert learning.grad is not None
        assert not learning.grad.any()


def test_a_graph_without_any_edge_or_relation_gives_zero():
    bare = replace(
        GRAPH,
        neighbours=np.full((20, 5), -1), relations=np.full((20, 5), -1),
        relation_vectors=np.zeros((0, 3)), projections=np.zeros((0, 4, 3)),
    )  # fmt: skip
    made = objective(bare)
    loss, _ = made.loss(text_states(3, random_table(), Reader()), batches(made, TEXT)[1])
    assert float(loss.detach()) == 0


def test_missing_and_foreign_inputs_are_refused():
    with pytest.raises(
        ConfigError, match=r"neighbours of entities are known; add .* neighbour_attention"
    ):
        objective(graph=None)
    made = objective()
    _, batch = batches(made, TEXT)
    with pytest.raises(ConfigError, match="masked_neighbour: the model has no entity table"):
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
        ("reduction", "sum", "reduction: expected one of mean, sequence_sum, found 'sum'"),
    ],
)
def test_wrong_settings_are_refused(name, value, message):
    with pytest.raises(ConfigError, match=message):
        MaskedNeighbourConfig(**{name: value})


LARGE = {"n_entities": 3000, "dim": 100, "n_relations": 14, "max_neighbours": 10, "dim_r": 100}


def large(dtype):
    """A graph, vectors of 100 mentions of it, its table, and 11 entities for each edge."""
    graph = random_graph(**LARGE, dtype=np.float32 if dtype == torch.float32 else np.float64)
    rng = torch.Generator().manual_seed(0)
    vectors = torch.randn(100, 100, generator=rng).to(dtype)
    table = torch.randn(3000, 100, generator=rng).to(dtype)
    edges = EdgeTable.of(graph).edges(torch.arange(2, 102))
    sampled = torch.randint(3000, (len(edges), 10), generator=rng)
    return graph, vectors, table, edges, torch.cat([edges.neighbour[:, None], sampled], 1)


def slow_cosines(graph, vectors, table, edges, columns):
    """Project mentions and every entity (equation 16)."""
    relation = torch.repeat_interleave(
        torch.tensor(edges.relations), torch.tensor(edges.sizes)
    ).tolist()
    found = []
    for row, number in enumerate(relation):
        projection = torch.from_numpy(graph.projections[number]).to(table.dtype)
        own = torch.from_numpy(graph.relation_vectors[number]).to(table.dtype)
        left = vectors[edges.mention[row]] @ projection + edges.sign[row] * own
        found.append(cosine_similarity(left[None], table[columns[row]] @ projection))
    return torch.stack(found)


@pytest.mark.parametrize("trained", [False, True])
def test_the_fast_form_is_the_slow_one_in_single_precision(trained):
    graph, vectors, table, edges, columns = large(torch.float32)
    scorer = Scorer(RelationProducts(graph), "eq16")
    found = scorer(vectors, table.requires_grad_(trained), edges, columns)
    expected = slow_cosines(graph, vectors, table, edges, columns)
    assert len(edges) > 500
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_gradients_of_the_fast_form_are_those_of_the_slow_one():
    graph, vectors, table, edges, columns = large(torch.float64)
    gradients = []
    for score in (
        Scorer(RelationProducts(graph), "eq16"),
        lambda *given: slow_cosines(graph, *given),
    ):
        own, rows = vectors.clone().requires_grad_(), table.clone().requires_grad_()
        weights = torch.arange(columns.numel()).view_as(columns).sin()
        (score(own, rows, edges, columns) * weights).sum().backward()
        gradients.append((own.grad, rows.grad))
    for fast, slow in zip(*gradients, strict=True):
        torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-12)


def test_lengths_are_cached_for_the_relations_in_use():
    graph, vectors, table, edges, columns = large(torch.float32)
    products = RelationProducts(graph)
    scorer = Scorer(products, "eq16")
    kept = scorer(vectors, table, edges, columns)
    computed = scorer(vectors, table.clone().requires_grad_(), edges, columns)
    torch.testing.assert_close(kept, computed.detach(), rtol=1e-5, atol=1e-6)
    assert list(scorer._lengths._lengths) == edges.relations
    lengths = scorer._lengths.of(table, 3)
    expected = (table @ torch.from_numpy(graph.projections[3])).square().sum(1)
    torch.testing.assert_close(lengths, expected, rtol=1e-4, atol=0)
    assert scorer._lengths.of(table, 3) is lengths


def test_lengths_of_a_written_table_are_computed_again():
    """A resumed run loads its weights after the first batch was computed."""
    graph, vectors, table, edges, columns = large(torch.float32)
    scorer = Scorer(RelationProducts(graph), "eq16")
    scorer(vectors, table, edges, columns)
    table.copy_(3 * table.flip(0))
    found = scorer(vectors, table, edges, columns)
    expected = slow_cosines(graph, vectors, table, edges, columns)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_zero_vectors_have_a_finite_gradient():
    graph = random_graph()
    edges = EdgeTable.of(graph).edges(torch.tensor([5]))
    vectors = torch.zeros(1, 4, dtype=torch.float64, requires_grad=True)
    table = torch.zeros(20, 4, dtype=torch.float64, requires_grad=True)
    Scorer(RelationProducts(graph), "eq19")(
        vectors, table, edges, edges.neighbour[:, None]
    ).sum().backward()
    assert vectors.grad.isfinite().all()
    assert table.grad.isfinite().all()


def test_under_autocast_scores_are_those_of_single_precision():
    graph = random_graph(dtype=np.float32)
    made = MaskedNeighbour(MaskedNeighbourConfig(), setting_of(graph, "all"))
    _, batch = batches(made, [sequence([(0, 1, 5), (3, 3, 9)])])
    vectors = torch.randn(2, 4, generator=torch.Generator().manual_seed(4)).bfloat16()
    states = text_states(1, random_table().float(), lambda *given: vectors)
    found = []
    for enabled in (True, False):
        torch.manual_seed(0)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            loss, _ = made.loss(states, batch)
        found.append(float(loss))
    assert found[0] == found[1]


def test_a_sample_of_the_true_neighbour_does_not_compete():
    scores = torch.tensor([[1.0, 1.0, 0.5], [1.0, 2.0, 0.0], [1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    columns = torch.tensor([[7, 7, 3], [7, 2, 3], [7, 7, 7], [7, 6, 3]])
    assert first_column_wins(scores, columns).tolist() == [True, False, False, False]


def test_negatives_are_sampled_by_their_counts_within_the_type():
    graph = random_graph(n_entities=30)
    types = TypeSampler.of(graph)
    torch.manual_seed(1)
    n_each = 20_000
    sampled = types.sample(torch.arange(30), n_each)
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
    sampled = TypeSampler.of(graph).sample(torch.tensor([7, 8]), 1000)
    assert (sampled[0] == 7).all()
    assert not (sampled[1] == 7).any()


def test_a_mention_learns_to_predict_its_neighbours():
    graph = random_graph(n_entities=40, dim=8, dim_r=8, max_neighbours=2)
    made = MaskedNeighbour(MaskedNeighbourConfig(), setting_of(graph, "all"))
    _, batch = batches(made, [sequence([(k, k, 4 + k) for k in range(12)])])
    states = text_states(1, random_table(40, 8), Reader(8))
    vectors = torch.zeros(12, 8, dtype=torch.float64, requires_grad=True)
    learning = text_states(1, states.table, lambda *given: vectors)
    optimiser, found = torch.optim.Adam([vectors], lr=0.1), []
    torch.manual_seed(0)
    for _ in range(60):
        loss, stats = made.loss(learning, batch)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        found.append(stats)
    first, last = (np.mean([s["accuracy"] for s in part]) for part in (found[:5], found[-5:]))
    assert last > first + 0.3
    assert last > 0.75
