"""Pre-training on annotated text: what a run writes, resumes, and gives on several processes."""

from __future__ import annotations

import json

import pytest
import torch
from transformers import AutoModel, AutoModelForMaskedLM
from two_processes import as_values, pretrain_on_two

from biograft.errors import ConfigError, StoreError
from biograft.nn import TextEncoder
from biograft.nn.knowledge import KnowledgeBertForMaskedLM
from biograft.pretraining.recipe import PretrainingRecipe
from biograft.pretraining.run import pretrain

TRAINING = {
    "steps": 6,
    "batch_size": 8,
    "precision": "fp32",
    "learning_rate": 2e-3,
    "save_every": 3,
}
OBJECTIVES = {
    "masked_tokens": {"mode": "whole_entity"},
    "entity_detection": {},
    "entity_linking": {},
}


@pytest.fixture(scope="module")
def encoder(bench, tmp_path_factory):
    """The tiny encoder, without dropout."""
    folder = tmp_path_factory.mktemp("bert") / "bert"
    model = TextEncoder.from_pretrained(bench.encoder)
    model.model.config.hidden_dropout_prob = model.model.config.attention_probs_dropout_prob = 0.0
    model.save_pretrained(folder)
    return folder


@pytest.fixture
def recipe(starter_shards, encoder):
    def make(knowledge=True, objectives=None, stream=None, **training):
        values = {
            "encoder": {"name": str(encoder)},
            "stream": {
                "kind": "annotated_text", "shards": str(starter_shards),
                "max_length": 32, "pack": False,
                **(stream or {}),
            },
            "objective": OBJECTIVES if objectives is None else objectives,
            "training": TRAINING | training,
        }  # fmt: skip
        if knowledge:
            usual = {"after": 1, "dim": 8, "n_nearest": 4}
            values["knowledge"] = usual if knowledge is True else knowledge
        return PretrainingRecipe.from_values("tiny", values)

    return make


def losses(run):
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line]


def weights(folder):
    return AutoModelForMaskedLM.from_pretrained(folder).state_dict()


def test_a_run_gives_a_model_that_knows_its_entities(bench, recipe, tmp_path):
    result = pretrain(recipe(steps=30), bench.kb, tmp_path / "run")
    model = AutoModelForMaskedLM.from_pretrained(result.encoder)
    assert isinstance(model, KnowledgeBertForMaskedLM)
    assert model.config.n_entities == result.counts["text"]["n_entities"] > 30
    lines = (result.encoder / "entities.jsonl").read_text(encoding="utf-8").splitlines()
    first = json.loads(lines[0])
    assert bench.kb[first["id"]].name == first["name"]
    found = losses(tmp_path / "run")
    assert sum(found[-5:]) < 0.9 * sum(found[:5])
    entry = json.loads((tmp_path / "run/metrics.jsonl").read_text().splitlines()[-2])
    assert {f"{name}.loss" for name in OBJECTIVES} < set(entry)
    vectors = TextEncoder.from_pretrained(result.encoder).encode(["fever"])
    assert vectors.shape == (1, 32)


def test_without_knowledge_it_is_a_plain_bert(recipe, tmp_path):
    plain = recipe(knowledge=False, objectives={"masked_tokens": {"mode": "whole_word"}})
    result = pretrain(plain, None, tmp_path / "run")
    assert AutoModel.from_pretrained(result.encoder).config.model_type == "bert"
    assert result.training_data.endswith("entities")


def test_a_resumed_run_ends_with_the_same_weights(recipe, tmp_path):
    whole = pretrain(recipe(), None, tmp_path / "whole")
    stopped = recipe(max_minutes=1e-9)
    while not pretrain(
        stopped, None, tmp_path / "parts", resume=(tmp_path / "parts").exists()
    ).training.finished:
        pass
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    parts = weights(tmp_path / "parts/encoder")
    for name, tensor in weights(whole.encoder).items():
        assert torch.equal(tensor, parts[name]), name


def test_accumulated_batches_are_as_one(recipe, tmp_path):
    pretrain(recipe(batch_size=8), None, tmp_path / "one")
    pretrain(recipe(batch_size=4, accumulate=2), None, tmp_path / "two")
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), abs=1e-5)


@pytest.mark.slow
def test_two_processes_are_as_one(recipe, tmp_path):
    pretrain(recipe(batch_size=8), None, tmp_path / "one")
    pretrain_on_two(recipe(batch_size=4), None, tmp_path / "two")
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), abs=1e-5)


def test_a_model_with_knowledge_is_trained_further(bench, recipe, tmp_path):
    first = pretrain(recipe(), bench.kb, tmp_path / "first")
    assert first.counts["n_entities_drawn"] == first.counts["text"]["n_entities"]
    on = as_values(recipe())
    on["encoder"] = {"name": str(first.encoder)}
    second = pretrain(PretrainingRecipe.from_values("on", on), None, tmp_path / "second")
    names = [(run / "entities.jsonl").read_text() for run in (first.encoder, second.encoder)]
    assert names[0] == names[1]
    on["knowledge"]["n_nearest"] = 3
    with pytest.raises(ConfigError, match=r"knowledge\.n_nearest: .* with 4 already, found 3"):
        pretrain(PretrainingRecipe.from_values("on", on), None, tmp_path / "third")


class TestWhatDoesNotFit:
    def test_linking_without_entities(self, recipe, tmp_path):
        linking = recipe(knowledge=False, objectives={"entity_linking": {}})
        with pytest.raises(ConfigError, match="no table of entities"):
            pretrain(linking, None, tmp_path / "run")
        assert not (tmp_path / "run").exists()

    def test_more_layers_than_there_are(self, recipe, tmp_path):
        deep = recipe(knowledge={"after": 3, "dim": 8})
        with pytest.raises(ConfigError, match=r"knowledge\.after: .* has 2 layers, found 3"):
            pretrain(deep, None, tmp_path / "run")

    def test_sequences_that_are_too_long(self, recipe, tmp_path):
        with pytest.raises(ConfigError, match=r"stream\.max_length: .* takes 64 tokens at most"):
            pretrain(recipe(stream={"max_length": 128}), None, tmp_path / "run")

    def test_text_that_is_not_there(self, recipe, tmp_path):
        with pytest.raises(StoreError, match="corpus annotate"):
            pretrain(recipe(stream={"shards": str(tmp_path)}), None, tmp_path / "run")
        assert not (tmp_path / "run").exists()
