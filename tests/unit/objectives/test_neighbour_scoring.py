"""The fast form against projecting every entity, the lengths that are kept, and what is drawn."""

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
    setting as setting_of,
    text_states,
)
from torch.nn.functional import cosine_similarity

from biograft.objectives.configs import MaskedNeighbourConfig
from biograft.objectives.masked_neighbour import (
    EdgeTable,
    MaskedNeighbour,
    RelationProducts,
    TypeSampler,
    Scorer,
    first_column_wins,
)

LARGE = {"n_entities": 3000, "dim": 100, "n_relations": 14, "most": 10, "dim_r": 100}


def large(dtype):
    """A graph, vectors of 100 mentions of it, its table, and 11 entities for each edge."""
    graph = random_graph(**LARGE, dtype=np.float32 if dtype == torch.float32 else np.float64)
    rng = torch.Generator().manual_seed(0)
    vectors = torch.randn(100, 100, generator=rng).to(dtype)
    table = torch.randn(3000, 100, generator=rng).to(dtype)
    edges = EdgeTable.of(graph).edges(torch.arange(2, 102))
    drawn = torch.randint(3000, (len(edges), 10), generator=rng)
    return graph, vectors, table, edges, torch.cat([edges.neighbour[:, None], drawn], 1)


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


@pytest.mark.parametrize("learns", [False, True])
def test_the_fast_form_is_the_slow_one_in_single_precision(learns):
    graph, vectors, table, edges, columns = large(torch.float32)
    scorer = Scorer(RelationProducts(graph), "eq16")
    found = scorer(vectors, table.requires_grad_(learns), edges, columns)
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


def test_lengths_are_kept_for_the_relations_in_use_and_are_those_computed():
    graph, vectors, table, edges, columns = large(torch.float32)
    products = RelationProducts(graph)
    scorer = Scorer(products, "eq16")
    kept = scorer(vectors, table, edges, columns)
    computed = scorer(vectors, table.clone().requires_grad_(), edges, columns)
    torch.testing.assert_close(kept, computed.detach(), rtol=1e-5, atol=1e-6)
    assert list(scorer._kept._lengths) == edges.relations
    lengths = scorer._kept.of(table, 3)
    expected = (table @ torch.from_numpy(graph.projections[3])).square().sum(1)
    torch.testing.assert_close(lengths, expected, rtol=1e-4, atol=0)
    assert scorer._kept.of(table, 3) is lengths


def test_lengths_of_a_table_that_was_written_are_not_kept():
    """A run that goes on loads its weights after the first batch was tried out."""
    graph, vectors, table, edges, columns = large(torch.float32)
    scorer = Scorer(RelationProducts(graph), "eq16")
    scorer(vectors, table, edges, columns)
    table.copy_(3 * table.flip(0))
    found = scorer(vectors, table, edges, columns)
    expected = slow_cosines(graph, vectors, table, edges, columns)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_vectors_of_nothing_have_no_infinite_slope():
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


def test_a_rival_that_is_the_true_neighbour_is_none():
    scores = torch.tensor([[1.0, 1.0, 0.5], [1.0, 2.0, 0.0], [1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    columns = torch.tensor([[7, 7, 3], [7, 2, 3], [7, 7, 7], [7, 6, 3]])
    assert first_column_wins(scores, columns).tolist() == [True, False, False, False]  # best of none


def test_negatives_are_drawn_by_their_counts_among_those_of_the_same_type():
    graph = random_graph(n_entities=30)
    types = TypeSampler.of(graph)
    torch.manual_seed(1)
    n_each = 20_000
    drawn = types.sample(torch.arange(30), n_each)
    assert drawn.shape == (30, n_each)
    counts, chi_square, freedom = np.maximum(graph.counts, 1), 0.0, 0
    for entity in range(30):
        same = graph.types == graph.types[entity]
        found = np.bincount(drawn[entity].numpy(), minlength=30)
        assert not found[~same].any()
        expected = n_each * counts[same] / counts[same].sum()
        chi_square += float(((found[same] - expected) ** 2 / expected).sum())
        freedom += int(same.sum()) - 1
        rate = counts[entity] / counts[same].sum()
        assert math.exp(types.log_rates[entity]) == pytest.approx(rate, rel=1e-12)
    assert chi_square < freedom + 4 * math.sqrt(2 * freedom)


def test_an_entity_alone_of_its_type_is_all_that_can_be_drawn():
    graph = random_graph(n_entities=30)
    graph.types[:] = 1
    graph.types[7] = -1
    drawn = TypeSampler.of(graph).sample(torch.tensor([7, 8]), 1000)
    assert (drawn[0] == 7).all()
    assert not (drawn[1] == 7).any()


def test_a_mention_learns_to_foretell_its_neighbours():
    graph = random_graph(n_entities=40, dim=8, dim_r=8, most=2)
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
