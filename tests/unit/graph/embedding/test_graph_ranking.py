"""Link prediction: ranks equal to PyKEEN's, and to counting in plain loops."""

import numpy as np
import pytest

from biograft.errors import InputError
from biograft.graph import GraphRecipe, LinkPrediction, ModelConfig, predict_links, rank_triples
from biograft.graph.embedding.loops import (
    L1,
    L2,
    L2_SQUARED,
    Tables,
    clip_norm,
    distance,
    project,
)
from biograft.graph.embedding.steps import new_run

NORMS = {"l1": L1, "l2": L2, "l2-squared": L2_SQUARED}


@pytest.mark.parametrize("side", ["both", "head", "tail"])
@pytest.mark.parametrize("ties", ["optimistic", "realistic", "pessimistic"])
def test_metrics_equal_pykeens(side, ties, pykeen, graph):
    """Within 32 bits, in which PyKEEN computes these means; its ranks: tests/contract."""
    tables, report = pykeen
    splits, expected = report["graph"], report["metrics"][f"{side}.{ties}"]
    triples = graph(splits["train"], splits["valid"], splits["test"])
    vectors = Tables(tables["entity"], tables["relation"], np.zeros((0, 8, 8)))
    result = predict_links(vectors, ModelConfig(dim=8), triples).metrics(side, ties)
    assert result["mrr"] == pytest.approx(expected["inverse_harmonic_mean_rank"], rel=1e-6)
    assert result["mean_rank"] == pytest.approx(expected["arithmetic_mean_rank"], rel=1e-6)
    for k in (1, 3, 10):
        assert result[f"hits@{k}"] == pytest.approx(expected[f"hits_at_{k}"], rel=1e-6)


def plain_distance(tables, model, triple):
    head, relation, tail = triple
    ends = [tables.entity[head], tables.entity[tail]]
    if len(tables.projection):
        for k, end in enumerate(ends):
            ends[k] = np.empty(tables.relation.shape[1])
            project(end, tables.projection[relation], ends[k])
            if model.clamp:
                clip_norm(ends[k])
    return distance(ends[0], tables.relation[relation], ends[1], NORMS[model.norm])


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("norm", ["l1", "l2", "l2-squared"])
@pytest.mark.parametrize("kind", ["transe", "transr"])
def test_ranks_equal_plain_counting(kind, norm, inverse, random_graph, graph):
    random_triples = random_graph(90, 20, 3)
    rows = [*zip(random_triples.heads, random_triples.relations, random_triples.tails, strict=True)]
    triples = graph(rows[:60], rows[60:75], rows[75:], n_entities=25)
    model = ModelConfig(kind=kind, dim=40, norm=norm, projection="xavier", inverse=inverse)
    learned = triples.with_inverse() if inverse else triples
    tables = new_run(learned, GraphRecipe(model=model), np.float64).tables
    known, candidates = set(rows), sorted({int(e) for h, _, t in rows for e in (h, t)})
    result = predict_links(tables, model, triples)
    for side, position in (("head", 0), ("tail", 2)):
        for row, rank in zip(rows[75:], result.ranks(side), strict=True):
            costs = {}
            for entity in candidates:
                query = list(row)
                query[position] = entity
                if tuple(query) in known and tuple(query) != tuple(row):
                    continue
                if inverse and side == "head":
                    query = [query[2], query[1] + 3, query[0]]
                costs[entity] = plain_distance(tables, model, query)
            assert rank == 1 + sum(value < costs[int(row[position])] for value in costs.values())


def test_equal_vectors_tie_at_any_row(graph):
    rng = np.random.default_rng(0)
    entity = rng.normal(size=(101, 37)).astype(np.float32)
    entity[1:] = entity[1]
    tables = Tables(entity, rng.normal(size=(1, 37)).astype(np.float32), np.zeros((0, 37, 37)))
    triples = graph([(0, 0, k) for k in (5, 9)], (), [(0, 0, 80)], 101, 1)
    everyone = graph([(k, 0, 0) for k in range(101)], (), [(0, 0, 80)], 101, 1)
    counts = rank_triples(tables, ModelConfig(dim=37), triples.of_split("test"), everyone)
    assert counts["tail"].equal.tolist() == [99]


def test_metrics_are_in_percent_with_their_unit(graph):
    from biograft.graph.embedding.ranking import RankCounts

    one = np.array([0, 3]), np.array([0, 1])
    counts = {"tail": RankCounts(*one), "head": RankCounts(*one)}
    report = LinkPrediction(counts, 10).to_json()
    assert report["unit"] == "percent"
    assert report["mrr"] == pytest.approx(100 * (1 + 1 / 4.5) / 2, abs=1e-4)
    assert (report["hits@1"], report["hits@3"], report["hits@10"]) == (
        50,
        50,
        100,
    )
    assert report["mean_rank"] == 2.75
    assert report["optimistic"]["mean_rank"] == 2.5
    assert report["pessimistic"]["mean_rank"] == 3


def test_a_split_without_triples_cannot_be_ranked(graph):
    triples = graph([(0, 0, 1)])
    tables = new_run(triples, GraphRecipe()).tables
    with pytest.raises(InputError, match="holds no test triples"):
        predict_links(tables, ModelConfig(), triples)


def test_vectors_that_are_not_finite_are_not_ranked(graph):
    """Nothing is closer than NaN: such vectors had an MRR of 200 percent."""
    triples = graph([(0, 0, 1)], (), [(1, 0, 2), (2, 0, 3)])
    tables = new_run(triples, GraphRecipe()).tables
    for bad in (np.nan, np.inf):
        tables.entity[2] = bad
        with pytest.raises(InputError, match="not finite"):
            predict_links(tables, ModelConfig(), triples)
    tables.entity[2, :2] = np.inf, -np.inf
    with pytest.raises(InputError, match="not finite"):
        predict_links(tables, ModelConfig(), triples)


@pytest.mark.parametrize("kind", ["transe", "transr"])
def test_realistic_ranks_of_many_ties_are_means_over_all_orders(kind, graph):
    """Vectors of few different values: filtered answers tie too, and do not count."""
    rng = np.random.default_rng(5)
    rows = {tuple(map(int, row)) for row in rng.integers(0, (14, 2, 14), (60, 3))}
    rows = sorted(rows)
    triples = graph(rows[::2], rows[1::4], rows[3::4], n_entities=16, n_relations=2)
    model = ModelConfig(kind=kind, dim=3, projection="identity")
    tables = new_run(triples, GraphRecipe(model=model), np.float64).tables
    tables.entity[:] = rng.integers(0, 2, tables.entity.shape) / 2
    tables.relation[:] = rng.integers(0, 2, tables.relation.shape) / 2
    candidates = sorted({entity for head, _, tail in rows for entity in (head, tail)})
    result = predict_links(tables, model, triples)
    n_ties = 0
    for side, position in (("head", 0), ("tail", 2)):
        ranked = (result.ranks(side, ties) for ties in ("optimistic", "realistic", "pessimistic"))
        for row, low, realistic, high in zip(rows[3::4], *ranked, strict=True):
            costs = {}
            for entity in candidates:
                other = (entity, *row[1:]) if position == 0 else (*row[:2], entity)
                if other == row or other not in rows:
                    costs[entity] = plain_distance(tables, model, other)
            before = sum(value < costs[row[position]] for value in costs.values())
            equal = sum(value == costs[row[position]] for value in costs.values())
            ranks = [before + k for k in range(1, equal + 1)]
            assert (low, realistic, high) == (ranks[0], sum(ranks) / len(ranks), ranks[-1])
            n_ties += equal > 1
    assert n_ties > 10
