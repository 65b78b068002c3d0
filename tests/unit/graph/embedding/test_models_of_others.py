"""A graph model in one file outside the package: RotatE of examples/, by plain complex numbers."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from biograft.errors import ConfigError
from biograft.graph import Embeddings, embed_graph, predict_links, rank_triples, read_triples
from biograft.graph.config import GRAPH_MODELS, GraphRecipe, ModelConfig
from biograft.graph.embedding.loops import Tables

EXAMPLE = Path(__file__).parents[4] / "examples" / "rotate.py"


@pytest.fixture(scope="module")
def rotate():
    """The module of the example, which registers its model for this process."""
    spec = importlib.util.spec_from_file_location("rotate", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_rotations_learn_a_ring(rotate, small_base, tmp_path):
    assert len(EXAMPLE.read_text().splitlines()) <= 60
    scores = []
    for epochs in (1, 60):
        out = tmp_path / str(epochs)
        embed_graph(small_base, rotate.recipe(16, epochs=epochs, batch=32), out)
        trained = Embeddings.open(out)
        found = predict_links(trained.tables, trained.model, read_triples(small_base))
        scores.append(found.metrics()["mrr"])
    assert scores[1] > 0.9 > scores[0]


def test_ranks_are_those_of_plain_complex_numbers(rotate, random_graph):
    triples = random_graph(n=40, n_entities=9)
    rng = np.random.default_rng(5)
    entity, angle = rng.normal(size=(9, 8)), rng.normal(size=(3, 4))
    tables = Tables(entity, angle, np.zeros((0, 8, 4)))
    model = ModelConfig(kind="rotate", dim=8, relation_dim=4, norm="l2", entity_bound="none")
    counted = rank_triples(tables, model, triples, triples)
    points = entity[:, :4] + 1j * entity[:, 4:]
    known = set(zip(triples.heads, triples.relations, triples.tails, strict=True))
    entities = np.union1d(triples.heads, triples.tails)

    def distance(head, relation, tail):
        turned = points[head] * np.exp(1j * np.pi * angle[relation])
        return float(np.sqrt((np.abs(turned - points[tail]) ** 2).sum()))

    for k, (h, r, t) in enumerate(
        zip(triples.heads, triples.relations, triples.tails, strict=True)
    ):
        own = distance(h, r, t)
        tails = sum(distance(h, r, e) < own - 1e-9 for e in entities if (h, r, e) not in known)
        heads = sum(distance(e, r, t) < own - 1e-9 for e in entities if (e, r, t) not in known)
        assert (counted["tail"].better[k], counted["head"].better[k]) == (tails, heads)


def test_an_unknown_model_is_named(rotate):
    with pytest.raises(ConfigError, match=r"model.kind: expected one of transe, transr, rotate, f"):
        GraphRecipe.load({"kind": "graph", "model": {"kind": "rotat"}})
    assert "rotate" in GRAPH_MODELS
