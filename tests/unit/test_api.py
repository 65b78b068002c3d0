"""The functions at the top of the package: each runs, and refuses what it does not use."""

from __future__ import annotations

import json

import pytest

from biograft import KnowledgeBase, Linker, Recipe, annotate, evaluate, finetune
from biograft.errors import ConfigError


@pytest.fixture(scope="module")
def kb(starter):
    return KnowledgeBase.open(starter)


def test_annotate_takes_one_file_or_several(kb, tmp_path):
    text = tmp_path / "a.txt"
    text.write_text("Asthma and measles.\n", encoding="utf-8")
    one = annotate(kb.folder, text, tmp_path / "one")
    two = annotate(kb.folder, [text], tmp_path / "two")
    assert one["report"] == two["report"]


def test_a_ranker_is_finetuned_and_evaluated(kb, tmp_path):
    names = ["asthma", "measles", "influenza", "diabetes mellitus", "hypertension", "stroke"]
    hits = Linker.open(kb).link_mentions(names)
    pairs = [(name, found[0].concept) for name, found in zip(names, hits, strict=True) if found]
    gold = tmp_path / "gold.concept"
    rows = [f"{n}||0|{len(name)}||Disease||{name}||{i}" for n, (name, i) in enumerate(pairs)]
    gold.write_text("\n".join(rows) + "\n", encoding="utf-8")
    recipe = Recipe.load("linker-ranker", ["config.epochs=1", "config.ensemble=1"])
    data = {"train": [str(gold)], "format": "biosyn"}
    done = finetune(recipe, tmp_path / "run", kb=kb, data=data)
    assert done.finished
    linker = Linker.from_pretrained(tmp_path / "run")
    assert 0 <= evaluate(linker, gold, "biosyn")["acc@1"] <= 1


def test_a_task_is_finetuned(tmp_path, tiny_encoder):
    path = tmp_path / "pairs.jsonl"
    rows = [{"first": "heart attack", "second": "stroke", "label": str(n % 2)} for n in range(8)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    encoder = str(tiny_encoder(["heart attack", "stroke"]))
    changes = ["config.training.epochs=1", "encoder.max_length=16"]
    recipe = Recipe.load("matching-cpu", changes, encoder=encoder)
    done = finetune(recipe, tmp_path / "run", data={"train": [str(path)], "dev": [str(path)]})
    assert done.model.is_dir()
    assert done.results["task"] == "matching"


@pytest.mark.parametrize(
    ("recipe", "options", "message"),
    [
        ("sapbert", {}, "biograft pretrain sapbert"),
        ("linker-ranker", {}, "needs a knowledge base"),
        ("ner-cpu", {"kb": "KB"}, "kb: a recipe of 'ner' does not use it"),
        ("ner-cpu", {}, r"train: name a file, here or as data\.train"),
        ("ner-cpu", {"data": {"trian": ["a"]}}, "did you mean 'train'"),
    ],
)
def test_mistakes(tmp_path, recipe, options, message):
    with pytest.raises(ConfigError, match=message):
        finetune(recipe, tmp_path / "run", **options)
