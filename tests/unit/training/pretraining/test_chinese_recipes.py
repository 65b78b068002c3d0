"""Shipped recipes of a new Chinese BERT: EMBERT, SMedBERT and combined."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from generative_store import store_in
from transformers import AutoModelForMaskedLM
from two_processes import as_one, pretrain_on_two

from biograft.graph import GraphRecipe, build_neighbours, embed_graph
from biograft.linking.annotation import AnnotationConfig, ExecutionConfig, annotate
from biograft.models import TextEncoder
from biograft.text import SegmentationConfig, build_segmentation
from biograft.training.pretraining import PretrainingRecipe, pretrain
from biograft.training.pretraining.recipe import hold_out

KINDS, ORGANS = ("急性", "慢性", "活动性", "反复性"), ("肝炎", "肾炎", "胃炎", "肠炎")
CONCEPTS = [
    {
        "id": f"D{k}{o}",
        "name": kind + organ,
        "type": "病",
        "names": {"zh": [kind + organ, kind[0] + organ[0]]},
        "relations": {"form": [f"P{k}"], "place": [f"P{len(KINDS) + o}"]},
    }
    for k, kind in enumerate(KINDS)
    for o, organ in enumerate(ORGANS)
]
PARTS = [
    {"id": f"P{n}", "name": part, "names": {"zh": [part]}, "type": "词"}
    for n, part in enumerate((*KINDS, *ORGANS))
]
SMALL = [
    "new.width=16",
    "new.layers=1",
    "new.heads=2",
    "new.feed_forward=32",
    "new.n_tokens=400",
    "stream.max_length=48",
    "training.batch_size=8",
    "training.learning_rate=2e-3",
    "training.save_every=3",
    "training.eval_every=6",
    'training.precision="fp32"',
]
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
    annotate(
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


def test_a_run_learns_by_all_objectives(given, recipe, tmp_path):
    kb, _ = given
    pretrain(recipe(), kb, tmp_path / "run")
    last = [row for row in rows(tmp_path / "run") if "evaluation" in row][-1]["evaluation"]
    for name in (*OBJECTIVES, "masked_tokens", "next_sentence"):
        assert any(key.startswith(f"{name}.") for key in last)


def test_a_run_is_evaluated_on_other_text(given, recipe, tmp_path):
    """All sequences are trained on; what is counted are the labels of the other text."""
    kb, _ = given
    (tmp_path / "text.txt").write_text("他有急性肝炎。休息。\n", encoding="utf-8")
    config = AnnotationConfig(cleaning=None, language="zh")
    annotate(
        kb.folder, [tmp_path / "text.txt"], tmp_path / "other", config, ExecutionConfig(workers=1)
    )
    other = f"stream.held_out={json.dumps(str(tmp_path / 'other'))}"
    result = pretrain(recipe("embert-cpu", other), kb, tmp_path / "r")
    last = [row["evaluation"] for row in rows(result.run) if "evaluation" in row][-1]
    assert last["entity_segmentation.n"] % 4 == 0 < last["entity_segmentation.n"]


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


@pytest.mark.long
def test_combined_resumes_exactly(given, recipe, graph, tmp_path):
    kb, _ = given
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    pretrain(recipe("combined-cpu", *graph, steps=4), kb, whole)
    pretrain(recipe("combined-cpu", *graph, "training.max_minutes=0.0001", steps=4), kb, parts)
    assert rows(parts)[-1]["step"] < 4
    pretrain(recipe("combined-cpu", *graph, steps=4), kb, parts, resume=True)
    ours, theirs = weights(parts), weights(whole)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize(
    "name",
    [
        "combined-cpu",
        *(pytest.param(each, marks=pytest.mark.long) for each in ("embert-cpu", "smedbert-cpu")),
    ],
)
def test_two_processes_are_as_one(given, recipe, graph, tmp_path, name):
    """Guards: each process sampled other neighbours as negatives."""
    kb, _ = given
    read = () if name == "embert-cpu" else graph
    made = recipe(name, *read, "new.dropout=0.0", steps=3)
    pretrain(made, kb, tmp_path / "one")
    pretrain_on_two(made, kb, tmp_path / "two")
    as_one(tmp_path / "one", tmp_path / "two")


def test_copies_of_held_out_documents_are_held_out():
    groups = np.tile(np.arange(500), 3)
    learned, shown = hold_out(groups, 7)
    assert len(shown) == 15
    assert not set(groups[learned]) & set(groups[shown])
    assert sorted([*learned, *shown]) == list(range(1500))
    assert hold_out(groups, 8)[1].tolist() != shown.tolist()
