"""Tasks that train low-rank adapters: what is saved is plain, and gives the same predictions."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file
from transformers import (
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
)

from biograft.models import TextEncoder
from biograft.models.adapters import LoraSettings
from biograft.models.tasks import TASKS, TaskExamples, open_task, write_model
from biograft.text import PairExample
from biograft.training.tasks import TaskRecipe, TaskTrainingData, finetune_task

pytest.importorskip("peft")
TRAINING = {"epochs": 20, "batch_size": 4, "precision": "fp32"}
AUTO = {
    "ner": AutoModelForTokenClassification,
    "matching": AutoModelForSequenceClassification,
    "relation": None,
}


@pytest.fixture
def examples(documents, relations):
    words = ("aspirin", "fever", "lung", "cancer")
    pairs = [PairExample(a, b, str(int(a == "fever"))) for a in words for b in words]
    return {"ner": documents, "relation": relations, "matching": pairs}


@pytest.mark.parametrize("task", AUTO)
def test_adapters_are_trained_and_merged(task, examples, encoder_folder, tmp_path):
    encoder = {"name": str(encoder_folder), "max_length": 32, "lora": {"r": 4}}
    training = TRAINING | {"learning_rate": 2e-2 if task == "ner" else 5e-3}
    values = {"task": task, "encoder": encoder, "config": {"training": training}}
    sets = {name: TaskExamples(examples[task]) for name in ("train", "dev", "test")}
    recipe = TaskRecipe.from_values("mine", values)
    result = finetune_task(recipe, TaskTrainingData(**sets, out=tmp_path / "run"))
    report = json.loads((result.run / "results.json").read_text())
    assert report["test"] == report["dev"]  # it is saved and opened between them
    assert report["test"]["f1"]["mean"] > 0.8
    weights = load_file(result.model / ("" if AUTO[task] else "encoder") / "model.safetensors")
    assert not [name for name in weights if "lora" in name]
    base = load_file(encoder_folder / "model.safetensors")
    own = {name.removeprefix("bert."): weight for name, weight in weights.items()}
    moved = {
        name for name, was in base.items() if name in own and (was != own[name][: len(was)]).any()
    }
    assert moved
    assert not [name for name in moved if "embeddings" in name or "LayerNorm" in name]


@pytest.mark.parametrize("task", AUTO)
def test_a_saved_model_predicts_the_same(task, examples, encoder_folder, tmp_path):
    kind = TASKS.load(task)
    encoder = TextEncoder.from_pretrained(encoder_folder, max_length=32, lora=LoraSettings(r=2))
    model = kind.create(encoder, kind.config(), examples[task])
    model.kind = task
    torch.manual_seed(1)
    with torch.no_grad():
        for name, weight in model.network.named_parameters():
            if "lora_" in name or "classifier" in name:
                weight.normal_(std=0.1)
    before = model.predict(examples[task], "fp32")
    write_model(tmp_path / "model", model, {})
    assert model.predict(examples[task], "fp32") == before  # the adapters stay in the model
    opened = open_task(tmp_path / "model")
    items, _ = model.training_items(examples[task])
    for network in (model.network, opened.network):
        network.eval()
    ours, again = (
        each.network(each.network.collate(items))[0].detach() for each in (model, opened)
    )
    torch.testing.assert_close(again, ours, atol=1e-5, rtol=1e-5)
    if auto := AUTO[task]:
        theirs = auto.from_pretrained(tmp_path / "model").eval()
        sides = (
            [[e.first for e in examples[task]], [e.second for e in examples[task]]]
            if task == "matching"
            else [[e.text for e in examples[task]]]
        )
        tokens = AutoTokenizer.from_pretrained(tmp_path / "model")(
            *sides, padding=True, return_tensors="pt"
        )
        logits = theirs(**tokens).logits.detach()
        if task == "ner":
            rows = zip(items, logits, ours, strict=True)
            pairs = [(row[list(i.positions)], own[: i.n_words]) for i, row, own in rows]
        else:
            pairs = [(logits, ours)]
        for found, own in pairs:
            torch.testing.assert_close(found, own, atol=1e-5, rtol=1e-5)
