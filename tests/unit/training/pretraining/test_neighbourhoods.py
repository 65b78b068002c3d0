"""The graph of the entities of a table, and recipes with entity inputs."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoModelForMaskedLM

from biograft.errors import ConfigError
from biograft.graph import (
    Embeddings,
    GraphRecipe,
    NeighbourTable,
    PeprConfig,
    build_neighbours,
    embed_graph,
)
from biograft.models import NeighbourAttention, TextEncoder
from biograft.training.pretraining import (
    KnowledgeConfig,
    PretrainingRecipe,
    pretrain,
    read_neighbourhood,
)

TRAINING = {"steps": 6, "batch_size": 8, "precision": "fp32", "learning_rate": 2e-3}
OBJECTIVES = {
    "masked_tokens": {"mode": "whole_entity", "mask_ratio": 0.4},
    "masked_neighbour": {"n_negatives": 3},
    "masked_mention": {},
}


@pytest.fixture(scope="module")
def neighbours(bench, tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph") / "neighbours"
    build_neighbours(bench.kb, folder, PeprConfig(k=4))
    return folder


def make_transr(kb, folder, seed=33):
    sizes = ["training.epochs=2", "model.dim=8", "model.relation_dim=6", f"training.seed={seed}"]
    embed_graph(kb, GraphRecipe.load("transr", sizes), folder)
    return folder


@pytest.fixture(scope="module")
def transr(bench, tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph") / "transr"
    return make_transr(bench.kb, folder)


@pytest.fixture
def recipe(bench, starter_shards, neighbours, transr):
    def make(layers=None, objectives=None, **knowledge):
        if layers is None:
            layers = {"neighbour_attention": {"after": 1, "n_neighbours": 4}}
        return PretrainingRecipe.from_values(
            "tiny",
            {
                "encoder": {"name": str(bench.encoder)},
                "knowledge": {
                    "layers": layers,
                    "neighbours": str(neighbours),
                    "vectors": str(transr),
                    "freeze": True,
                    **knowledge,
                },
                "stream": {
                    "kind": "annotated_text",
                    "shards": str(starter_shards),
                    "max_length": 32,
                    "pack": False,
                },
                "objective": OBJECTIVES if objectives is None else objectives,
                "training": TRAINING,
            },
        )

    return make


def some_ids(kb, n=40):
    return [kb.id_at(row) for row in range(0, 3 * n, 3)]


@pytest.mark.parametrize("whole", [True, False])
def test_the_graph_is_that_of_the_store(bench, neighbours, transr, whole):
    kb, ids = bench.kb, some_ids(bench.kb)
    config = KnowledgeConfig(
        layers={"neighbour_attention": {"after": 1, "n_neighbours": 4}},
        neighbours=neighbours,
        vectors=transr,
        whole_graph=whole,
    )
    counts = np.arange(len(ids))
    found = read_neighbourhood(config, ids, counts, kb, grows=True)
    table, graph = NeighbourTable.open(neighbours, kb), found.graph
    assert list(found.ids[: len(ids)]) == ids
    assert len(set(found.ids)) == len(found.ids)
    assert len(found.ids) > len(ids)
    assert graph.neighbours.shape[1] > 4  # some are joined by several relations
    kind_of = {}
    for row, identifier in enumerate(found.ids):
        edges = table[kb.row(identifier)]
        own = [found.ids[n] for n in graph.neighbours[row] if n >= 0]
        assert len(set(own)) <= 4
        first = list(dict.fromkeys(edges.neighbours.tolist()))[:4]
        kept = np.isin(edges.neighbours, first)
        theirs = [kb.id_at(int(n)) for n in edges.neighbours[kept]]
        if whole or row < len(ids):
            assert own == theirs
        else:
            assert own == [each for each in theirs if each in found.ids]
            continue
        signs = [1 if d == 0 else -1 for d in edges.directions[kept]]
        assert graph.signs[row, : len(own)].tolist() == signs
        assert graph.relations[row, : len(own)].tolist() == edges.relations[kept].tolist()
        kind_of.setdefault(int(graph.types[row]), set()).add(kb[identifier].types[:1])
    assert all(len(first) == 1 for first in kind_of.values())  # the first type of each
    assert len(kind_of) > 1
    assert (graph.relations[graph.neighbours < 0] == -1).all()
    assert not graph.signs[graph.neighbours < 0].any()
    assert graph.counts[: len(ids)].tolist() == counts.tolist()
    assert not graph.counts[len(ids) :].any()
    assert graph.projections.shape == (len(kb.relation_names), 8, 6)
    fixed = read_neighbourhood(config, ids, counts, kb, grows=False)
    assert list(fixed.ids) == ids


def test_a_run_gives_a_model_that_finds_its_entities(bench, recipe, tmp_path):
    result = pretrain(recipe(), bench.kb, tmp_path / "run")
    model = AutoModelForMaskedLM.from_pretrained(result.encoder)
    names = {name.text for name in bench.kb.concept_at(bench.kb.row(model.entities[0].id)).names}
    assert set(model.entities[0].names) == names
    entry = json.loads((tmp_path / "run/metrics.jsonl").read_text().splitlines()[-2])
    assert {f"{name}.loss" for name in OBJECTIVES} < set(entry)
    encoder = TextEncoder.from_pretrained(result.encoder, device="cpu")
    batch = encoder.tokenize([f"{model.entities[0].name} is bad"])
    assert 0 in encoder.add_entity_inputs(batch)["entities"].tolist()
    table = AutoModel.from_pretrained(result.encoder).entity_table.weight
    assert not table.requires_grad


def test_several_layers_and_a_model_trained_further(bench, recipe, tmp_path):
    both = {
        "entity_memory": {"after": 1, "n_nearest": 3},
        "neighbour_attention": {"after": 1, "n_neighbours": 4},
    }
    objectives = {**OBJECTIVES, "entity_detection": {}, "entity_linking": {}}
    first = pretrain(recipe(both, objectives), bench.kb, tmp_path / "first")
    values = recipe(both, objectives).to_json()
    del values["name"]
    values["encoder"] = {"name": str(first.encoder)}
    again = PretrainingRecipe.from_values("tiny", values)
    second = pretrain(again, bench.kb, tmp_path / "second")
    one, two = (AutoModel.from_pretrained(each.encoder) for each in (first, second))
    assert [e.id for e in one.entities] == [e.id for e in two.entities]
    others = {"vectors": make_transr(bench.kb, tmp_path / "vectors", seed=1)}
    for key, folder in {**others, "neighbours": tmp_path / "neighbours"}.items():
        if key == "neighbours":
            build_neighbours(bench.kb, folder, PeprConfig(k=4, damping=0.9))
        changed = {**values, "knowledge": {**values["knowledge"], key: str(folder)}}
        with pytest.raises(ConfigError, match=rf"knowledge\.{key}: .* differ"):
            pretrain(PretrainingRecipe.from_values("tiny", changed), bench.kb, tmp_path / "third")


@pytest.mark.parametrize("whole", [True, False])
def test_a_layer_with_entity_inputs_knows_all_entities_with_vectors(
    bench, recipe, transr, tmp_path, whole
):
    objectives = {"masked_tokens": {}, "entity_prediction": {}}
    fusion = recipe(
        {"entity_fusion": {"after": 1}},
        objectives,
        neighbours=None,
        vectors=str(transr),
        whole_graph=whole,
    )
    run = pretrain(fusion, bench.kb, tmp_path / "run")
    model = AutoModel.from_pretrained(run.encoder)
    of_text = run.counts["text"]["n_entities"]
    ids, embeddings = [entity.id for entity in model.entities], Embeddings.open(transr)
    assert len(set(ids)) == len(ids)
    if not whole:
        assert len(ids) == of_text
        return
    assert set(ids[of_text:]) == set(embeddings.entity_ids) - set(ids[:of_text])
    assert all(entity.names for entity in model.entities)
    row = embeddings.entity_ids.index(ids[-1])
    np.testing.assert_allclose(
        model.entity_table.weight[-1].detach(), embeddings.tables.entity[row]
    )


def test_predicted_neighbours_are_withheld_in_training(bench, recipe, tmp_path, monkeypatch):
    given = []
    forward = NeighbourAttention.forward

    def watch(self, inputs):
        given.append((inputs.entities, inputs.withheld))
        return forward(self, inputs)

    monkeypatch.setattr(NeighbourAttention, "forward", watch)
    pretrain(recipe(), bench.kb, tmp_path / "run")
    entities, withheld = (torch.cat(each) for each in zip(*given, strict=True))
    assert withheld.shape == (len(entities), 9)  # edges to 4 neighbours
    assert withheld[entities >= 0].any()
    assert not withheld[entities < 0].any()
    given.clear()
    without = {name: {} for name in ("masked_tokens", "masked_mention")}
    pretrain(recipe(objectives=without), bench.kb, tmp_path / "without")
    assert {type(withheld) for _, withheld in given} == {type(None)}
