"""Shipped recipes of a new Chinese BERT: EMBERT, SMedBERT and combined."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from generative_store import store_in
from transformers import AutoModelForMaskedLM
from two_processes import losses, pretrain_on_two

from biograft.annotation import AnnotationConfig, ExecutionConfig, annotate_corpus
from biograft.corpus import SegmentationConfig, build_segmentation
from biograft.errors import ConfigError
from biograft.graph import Embeddings, GraphRecipe, build_neighbours, embed_graph
from biograft.nn import TextEncoder
from biograft.pretraining import PretrainingRecipe, pretrain
from biograft.pretraining.run import hold_out_together

KINDS, ORGANS = ("急性", "慢性", "活动性", "反复性"), ("肝炎", "肾炎", "胃炎", "肠炎")
CONCEPTS = [
    {"id": f"D{k}{o}", "name": kind + organ, "type": "病",
     "names": {"zh": [kind + organ, kind[0] + organ[0]]},
     "relations": {"form": [f"P{k}"], "place": [f"P{len(KINDS) + o}"]}}
    for k, kind in enumerate(KINDS) for o, organ in enumerate(ORGANS)
]  # fmt: skip
PARTS = [{"id": f"P{n}", "name": part, "names": {"zh": [part]}, "type": "词"}
         for n, part in enumerate((*KINDS, *ORGANS))]  # fmt: skip
SMALL = ["new.width=16", "new.layers=1", "new.heads=2", "new.feed_forward=32", "new.n_tokens=400",
         "stream.max_length=48", "training.batch_size=8", "training.learning_rate=2e-3",
         "training.save_every=3", "training.eval_every=6", 'training.precision="fp32"']  # fmt: skip
OBJECTIVES = ("context_entity_consistency", "entity_segmentation", "bidirectional_entity_masking")


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """A store of two-part diseases, text that mentions them, and their segmentation."""
    folder = tmp_path_factory.mktemp("embert")
    kb = store_in(folder, [*CONCEPTS, *PARTS])
    names = [concept["name"] for concept in CONCEPTS]
    lines = [
        f"第{n}位患者因{names[n % 16]}住院治疗。出院后又有{names[(5 * n + 3) % 16]}，继续服药。"
        for n in range(120)
    ]
    (folder / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    config = AnnotationConfig(cleaning=None, language="zh")
    annotate_corpus(
        kb.folder, [folder / "text.txt"], folder / "corpus", config, ExecutionConfig(workers=1)
    )
    wanted = SegmentationConfig(word_segmenter="unigram")
    build_segmentation(kb, [folder / "text.txt"], folder / "segments", wanted)
    return kb, folder


@pytest.fixture
def recipe(given):
    _, folder = given

    def make(name="embert-cpu", *changes, steps=6):
        own = [f"stream.shards={json.dumps(str(folder / 'corpus'))}", f"training.steps={steps}"]
        if name not in ("smedbert-cpu", "knowbert-cpu"):
            own.append(f"stream.segmentation={json.dumps(str(folder / 'segments'))}")
        return PretrainingRecipe.load(name, [*SMALL, *own, *changes])

    return make


@pytest.fixture(scope="module")
def graph(given):
    """Overrides of recipes with neighbours: four layers, and the graph of the store."""
    kb, folder = given
    build_neighbours(kb, folder / "neighbours")
    sizes = ["training.epochs=2", "model.dim=8", "model.relation_dim=6"]
    embed_graph(kb, GraphRecipe.load("transr", sizes), folder / "transr")
    paths = {"neighbours": folder / "neighbours", "vectors": folder / "transr"}
    read = [f"knowledge.{key}={json.dumps(str(path))}" for key, path in paths.items()]
    return [*read, "new.layers=4"]


def rows(run: Path):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def weights(run: Path):
    return AutoModelForMaskedLM.from_pretrained(run / "encoder").state_dict()


def test_a_run_learns_by_all_objectives_and_resumes_exactly(given, recipe, tmp_path):
    kb, _ = given
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    pretrain(recipe(), kb, whole)
    last = [row for row in rows(whole) if "evaluation" in row][-1]["evaluation"]
    for name in (*OBJECTIVES, "masked_tokens", "next_sentence"):
        assert any(key.startswith(f"{name}.") for key in last)
    pretrain(recipe("embert-cpu", "training.max_minutes=0.0001"), kb, parts)
    assert rows(parts)[-1]["step"] < 6
    pretrain(recipe(), kb, parts, resume=True)
    for name, values in weights(whole).items():
        assert torch.equal(values, weights(parts)[name])


@pytest.mark.slow
@pytest.mark.parametrize("shard", [False, True])
def test_two_processes_are_as_one(given, recipe, tmp_path, shard):
    kb, _ = given
    same = recipe("embert-cpu", "new.dropout=0.0", f"training.shard={str(shard).lower()}", steps=4)
    pretrain(same, kb, tmp_path / "one")
    pretrain_on_two(same, kb, tmp_path / "two")
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), abs=1e-5)


MIXED = (*OBJECTIVES[:2], "entity_detection", "entity_linking")


@pytest.mark.parametrize(
    ("name", "others"),
    [("combined-cpu", MIXED), ("smedbert-cpu", ())],
    ids=["combined", "smedbert"],
)
def test_neighbours_beside_other_objectives(given, recipe, graph, tmp_path, name, others):
    """Two segments with their order; in combined also an entity memory and entity segments."""
    kb, _ = given
    result = pretrain(recipe(name, *graph), kb, tmp_path)
    metrics = [row.get("evaluation", row) for row in rows(tmp_path)]
    names = {"masked_tokens", "sentence_order", "masked_neighbour", "masked_mention", *others}
    for row in metrics:
        assert {key.removesuffix(".loss") for key in row if key.endswith(".loss")} == names
        assert all(math.isfinite(value) for value in row.values())
    assert all(any(row[f"{each}.loss"] > 0 for row in metrics) for each in names)
    encoder = TextEncoder.from_pretrained(result.encoder, device="cpu")
    assert ("entity_memory" in encoder.model.knowledge) is bool(others)
    assert encoder.model.knowledge["neighbour_attention"].infuse.weight.any()
    texts = ["患者因急性肝炎住院治疗。"]
    found = encoder.add_entity_inputs(encoder.tokenize(texts))["entities"].tolist()
    assert [encoder.model.entities[row].name for row in found] == ["急性肝炎"]
    assert np.isfinite(encoder.encode(texts)).all()


@pytest.mark.parametrize("freeze", ["true", "false"])
def test_combined_with_its_options(given, recipe, graph, tmp_path, freeze):
    """EMBERT's third objective beside the others, and an entity table that is trained."""
    kb, folder = given
    options = ["objective.bidirectional_entity_masking.weight=0.5", f"knowledge.freeze={freeze}"]
    result = pretrain(recipe("combined-cpu", *graph, *options, steps=3), kb, tmp_path)
    metrics = [row.get("evaluation", row) for row in rows(tmp_path)]
    for part in ("head", "adjective"):
        losses = [row[f"bidirectional_entity_masking.{part}.loss"] for row in metrics]
        assert all(map(math.isfinite, losses))
        assert max(losses) > 0
    encoder = TextEncoder.from_pretrained(result.encoder, device="cpu")
    table = encoder.model.entity_table.weight.detach()
    start = torch.from_numpy(Embeddings.open(folder / "transr").tables.entity.copy())
    assert bool(torch.isin(table[-1], start).all()) is (freeze == "true")


def test_the_recipe_of_base_size_is_the_small_one_at_another_size():
    """Its published parts are those of the recipes that it unites."""
    base, small = (PretrainingRecipe.load(name) for name in ("combined", "combined-cpu"))
    assert base.objectives == small.objectives
    assert base.stream.substitution == small.stream.substitution
    assert set(base.knowledge.layers) == set(small.knowledge.layers)
    smedbert, kebiolm = (PretrainingRecipe.load(name) for name in ("smedbert", "kebiolm"))
    assert base.training == smedbert.training
    of = {**smedbert.knowledge.layers, **kebiolm.knowledge.layers}
    assert base.knowledge.layers == of
    options = ["objective.bidirectional_entity_masking.weight=0.5", "knowledge.freeze=false"]
    changed = PretrainingRecipe.load("combined", options)
    assert changed.objectives["bidirectional_entity_masking"].weight == 0.5
    assert not changed.knowledge.freeze


@pytest.mark.parametrize(
    ("name", "rate"), [("embert-corruption-7.5", 0.075), ("embert", 0.15),
                       ("embert-corruption-25", 0.25)]
)  # fmt: skip
def test_corruption_rates_of_the_paper(name, rate):
    """Only the rate differs, and all of it may be halves of entities."""
    recipe, published = PretrainingRecipe.load(name), PretrainingRecipe.load("embert")
    masked = recipe.objectives["masked_tokens"]
    assert masked.selected_ratio == pytest.approx(rate)
    assert masked.mask_ratio / rate == pytest.approx(0.8)
    assert masked.random_ratio == masked.kept_ratio
    halves = recipe.objectives["bidirectional_entity_masking"]
    assert halves.max_token_ratio == pytest.approx(rate)
    kept = {
        "masked_tokens": published.objectives["masked_tokens"],
        "bidirectional_entity_masking": published.objectives["bidirectional_entity_masking"],
    }
    same = replace(recipe, name="embert", about=published.about,
                   objectives={**recipe.objectives, **kept})  # fmt: skip
    assert same == published


@pytest.mark.parametrize("name", ["knowbert", "ernie"])
def test_models_to_compare_with_differ_in_layer_and_objectives(name):
    base, recipe = (PretrainingRecipe.load(each) for each in ("smedbert", name))
    assert (recipe.encoder, recipe.stream, recipe.training) == (
        base.encoder, base.stream, base.training,
    )  # fmt: skip
    layers = {"knowbert": "entity_memory", "ernie": "entity_fusion"}
    assert list(recipe.knowledge.layers) == [layers[name]]
    assert recipe.knowledge.layers[layers[name]].after == 10
    assert (recipe.knowledge.vectors, recipe.knowledge.freeze) == (base.knowledge.vectors, True)
    own = {"knowbert": {"entity_detection", "entity_linking"}, "ernie": {"entity_prediction"}}
    assert set(recipe.objectives) == {"masked_tokens", "sentence_order", *own[name]}
    small = PretrainingRecipe.load(f"{name}-cpu")
    assert set(small.objectives) == set(recipe.objectives)
    assert list(small.knowledge.layers) == [layers[name]]


def test_an_entity_memory_is_trained_in_chinese(given, recipe, graph, tmp_path):
    kb, _ = given
    changes = [change for change in graph if not change.startswith("knowledge.neighbours")]
    changes.append("knowledge.layers.entity_memory.after=2")
    result = pretrain(recipe("knowbert-cpu", *changes), kb, tmp_path)
    last = [row for row in rows(tmp_path) if "evaluation" in row][-1]["evaluation"]
    assert last["entity_linking.loss"] > 0
    assert list(AutoModelForMaskedLM.from_pretrained(result.encoder).model.knowledge) == [
        "entity_memory"
    ]


def test_combined_resumes_exactly(given, recipe, graph, tmp_path):
    kb, _ = given
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    pretrain(recipe("combined-cpu", *graph, steps=4), kb, whole)
    pretrain(recipe("combined-cpu", *graph, "training.max_minutes=0.0001", steps=4), kb, parts)
    assert rows(parts)[-1]["step"] < 4
    pretrain(recipe("combined-cpu", *graph, steps=4), kb, parts, resume=True)
    ours, theirs = weights(parts), weights(whole)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_encoder_name_replaces_the_new_model(given, tmp_path):
    kb, folder = given
    own = [f"stream.shards={json.dumps(str(folder / 'corpus'))}",
           f"stream.segmentation={json.dumps(str(folder / 'segments'))}"]  # fmt: skip
    sizes = [change for change in SMALL if not change.startswith("new.")]
    starter_shards = own[:1]
    base = PretrainingRecipe.load("bert-zh-cpu", [*SMALL, *starter_shards, "training.steps=2"])
    pretrain(base, None, tmp_path / "base")
    folder_name = json.dumps(str(tmp_path / "base" / "encoder"))
    chosen = [*sizes, *own, f"encoder.name={folder_name}", "training.steps=2"]
    recipe = PretrainingRecipe.load("embert-cpu", chosen)
    assert recipe.new is None
    result = pretrain(recipe, kb, tmp_path / "further")
    assert result.training.finished
    before = AutoModelForMaskedLM.from_pretrained(tmp_path / "base" / "encoder").state_dict()
    after = weights(tmp_path / "further")
    assert before.keys() == after.keys()
    assert not all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "stream.substitution.probability=2.0",
            "probability: expected a number from 0 to 1, found 2",
        ),
        ("stream.max_length=600", "expected at most 512 for the new model"),
        ('new.kind="bart"', "new.kind: bart is for stream.kind = name_templates"),
    ],
)
def test_wrong_settings_are_refused(given, recipe, tmp_path, change, message):
    kb, _ = given
    with pytest.raises(ConfigError, match=message):
        pretrain(recipe("embert-cpu", change), kb, tmp_path / "run")


def test_copies_of_held_out_documents_are_held_out():
    groups = np.tile(np.arange(500), 3)
    learned, shown = hold_out_together(groups, 7)
    assert len(shown) == 15
    assert not set(groups[learned]) & set(groups[shown])
    assert sorted([*learned, *shown]) == list(range(1500))
    assert hold_out_together(groups, 8)[1].tolist() != shown.tolist()
