"""Ranks: equal to PyKEEN's, and to counting in plain loops."""

import numpy as np
import pytest

from biograft.errors import InputError
from biograft.graph.embedding.config import EmbeddingRecipe, ModelConfig
from biograft.graph.embedding.ranking import LinkPrediction, predict_links, rank_triples
from biograft.graph.embedding.scoring import L1, L2, L2_SQUARED, Tables, distance, project, shorten
from biograft.graph.embedding.training import begin, with_inverse

NORMS = {"l1": L1, "l2": L2, "l2-squared": L2_SQUARED}


def pykeen_result(pykeen, graph):
    tables, told = pykeen
    parts = told["graph"]
    triples = graph(parts["train"], parts["valid"], parts["test"])
    vectors = Tables(tables["entity"], tables["relation"], np.zeros((0, 8, 8)))
    return predict_links(vectors, ModelConfig(dim=8), triples), triples.of_split("test"), told


def test_ranks_are_pykeens_ties_too(pykeen, graph):
    result, test, told = pykeen_result(pykeen, graph)
    expected = {(*entry["triple"], entry["side"]): entry for entry in told["ranks"]}
    rows = list(zip(test.heads, test.relations, test.tails, strict=True))
    assert len(expected) == 2 * len(rows)
    for side in ("head", "tail"):
        for ties in ("optimistic", "realistic", "pessimistic"):
            ranks = result.ranks(side, ties)
            for row, rank in zip(rows, ranks, strict=True):
                assert rank == expected[(*map(int, row), side)][ties]
    assert any(entry["optimistic"] < entry["pessimistic"] for entry in expected.values())


@pytest.mark.parametrize("side", ["both", "head", "tail"])
@pytest.mark.parametrize("ties", ["optimistic", "realistic", "pessimistic"])
def test_metrics_are_pykeens(side, ties, pykeen, graph):
    """To 32 bits, in which PyKEEN takes these means."""
    result, _, told = pykeen_result(pykeen, graph)
    expected = told["metrics"][f"{side}.{ties}"]
    found = result.metrics(side, ties)
    assert found["mrr"] == pytest.approx(expected["inverse_harmonic_mean_rank"], rel=1e-6)
    assert found["mean_rank"] == pytest.approx(expected["arithmetic_mean_rank"], rel=1e-6)
    for k in (1, 3, 10):
        assert found[f"hits@{k}"] == pytest.approx(expected[f"hits_at_{k}"], rel=1e-6)


def plain_distance(tables, model, triple):
    head, relation, tail = triple
    ends = [tables.entity[head], tables.entity[tail]]
    if len(tables.projection):
        for k, end in enumerate(ends):
            ends[k] = np.empty(tables.relation.shape[1])
            project(end, tables.projection[relation], ends[k])
            if model.clamp:
                shorten(ends[k])
    return distance(ends[0], tables.relation[relation], ends[1], NORMS[model.norm])


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("norm", ["l1", "l2", "l2-squared"])
@pytest.mark.parametrize("kind", ["transe", "transr"])
def test_ranks_are_those_of_plain_counting(kind, norm, inverse, drawn_graph, graph):
    drawn = drawn_graph(90, 20, 3)
    rows = [*zip(drawn.heads, drawn.relations, drawn.tails, strict=True)]
    triples = graph(rows[:60], rows[60:75], rows[75:], n_entities=25)
    model = ModelConfig(kind=kind, dim=40, norm=norm, projection="xavier", inverse=inverse)
    learned = with_inverse(triples) if inverse else triples
    tables = begin(learned, EmbeddingRecipe(model=model), np.float64).tables
    known, candidates = set(rows), sorted({int(e) for h, _, t in rows for e in (h, t)})
    found = predict_links(tables, model, triples)
    for side, place in (("head", 0), ("tail", 2)):
        for row, rank in zip(rows[75:], found.ranks(side), strict=True):
            far = {}
            for entity in candidates:
                asked = list(row)
                asked[place] = entity
                if tuple(asked) in known and tuple(asked) != tuple(row):
                    continue
                if inverse and side == "head":
                    asked = [asked[2], asked[1] + 3, asked[0]]
                far[entity] = plain_distance(tables, model, asked)
            assert rank == 1 + sum(value < far[int(row[place])] for value in far.values())


def test_equal_vectors_tie_at_any_place(graph):
    draw = np.random.default_rng(0)
    entity = draw.normal(size=(101, 37)).astype(np.float32)
    entity[1:] = entity[1]
    tables = Tables(entity, draw.normal(size=(1, 37)).astype(np.float32), np.zeros((0, 37, 37)))
    triples = graph([(0, 0, k) for k in (5, 9)], (), [(0, 0, 80)], 101, 1)
    everyone = graph([(k, 0, 0) for k in range(101)], (), [(0, 0, 80)], 101, 1)
    counts = rank_triples(tables, ModelConfig(dim=37), triples.of_split("test"), everyone)
    assert counts["tail"].equal.tolist() == [99]


def test_figures_are_in_percent_and_say_so(graph):
    from biograft.graph.embedding.ranking import Counts

    one = np.array([0, 3]), np.array([0, 1])
    counts = {"tail": Counts(*one), "head": Counts(*one)}
    told = LinkPrediction(counts, 10).to_json()
    assert told["unit"] == "percent"
    assert told["mrr"] == pytest.approx(100 * (1 + 1 / 4.5) / 2, abs=1e-4)
    assert (told["hits@1"], told["hits@3"], told["hits@10"]) == (50, 50, 100)
    assert told["mean_rank"] == 2.75
    assert told["optimistic"]["mean_rank"] == 2.5
    assert told["pessimistic"]["mean_rank"] == 3


def test_a_part_without_triples_cannot_be_ranked(graph):
    triples = graph([(0, 0, 1)])
    tables = begin(triples, EmbeddingRecipe()).tables
    with pytest.raises(InputError, match="holds no test triples"):
        predict_links(tables, ModelConfig(), triples)


def test_vectors_that_are_no_numbers_are_not_ranked(graph):
    """Nothing is nearer than what is no number: such vectors had an MRR of 200 percent."""
    triples = graph([(0, 0, 1)], (), [(1, 0, 2), (2, 0, 3)])
    tables = begin(triples, EmbeddingRecipe()).tables
    for bad in (np.nan, np.inf):
        tables.entity[2] = bad
        with pytest.raises(InputError, match="a vector is no number, so that nothing"):
            predict_links(tables, ModelConfig(), triples)
    tables.entity[2, :2] = np.inf, -np.inf
    with pytest.raises(InputError, match="a vector is no number"):
        predict_links(tables, ModelConfig(), triples)


@pytest.mark.parametrize("kind", ["transe", "transr"])
def test_realistic_ranks_of_many_ties_are_means_over_all_orders(kind, graph):
    """Vectors of few different values: the filtered answers tie too, and do not count."""
    draw = np.random.default_rng(5)
    rows = {tuple(map(int, row)) for row in draw.integers(0, (14, 2, 14), (60, 3))}
    rows = sorted(rows)
    triples = graph(rows[::2], rows[1::4], rows[3::4], n_entities=16, n_relations=2)
    model = ModelConfig(kind=kind, dim=3, projection="identity")
    tables = begin(triples, EmbeddingRecipe(model=model), np.float64).tables
    tables.entity[:] = draw.integers(0, 2, tables.entity.shape) / 2
    tables.relation[:] = draw.integers(0, 2, tables.relation.shape) / 2
    standing = sorted({entity for head, _, tail in rows for entity in (head, tail)})
    found = predict_links(tables, model, triples)
    n_ties = 0
    for side, place in (("head", 0), ("tail", 2)):
        ranked = (found.ranks(side, ties) for ties in ("optimistic", "realistic", "pessimistic"))
        for row, low, realistic, high in zip(rows[3::4], *ranked, strict=True):
            far = {}
            for entity in standing:
                other = (entity, *row[1:]) if place == 0 else (*row[:2], entity)
                if other == row or other not in rows:
                    far[entity] = plain_distance(tables, model, other)
            before = sum(value < far[row[place]] for value in far.values())
            equal = sum(value == far[row[place]] for value in far.values())
            ranks = [before + k for k in range(1, equal + 1)]
            assert (low, realistic, high) == (ranks[0], sum(ranks) / len(ranks), ranks[-1])
            n_ties += equal > 1
    assert n_ties > 10
