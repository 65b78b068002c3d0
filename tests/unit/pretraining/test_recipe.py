"""Recipes: every shipped one loads, overrides are typed, mistakes are named."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from biograft.errors import ConfigError
from biograft.objectives import EntityGraph, Setting
from biograft.pretraining import PretrainingRecipe
from biograft.recipes import shipped_recipes

SMALL = """
[encoder]
name = "some/folder"
[objective.synonym_alignment]
"""


GRAPH = EntityGraph(
    neighbours=np.array([[1], [0]]), relations=np.zeros((2, 1), np.int64),
    signs=np.ones((2, 1), np.int64), types=np.zeros(2, np.int64), counts=np.ones(2, np.int64),
    relation_vectors=np.zeros((1, 3), np.float32), projections=np.zeros((1, 3, 3), np.float32),
)  # fmt: skip


@pytest.mark.parametrize("name", shipped_recipes("pretrain"))
def test_every_shipped_recipe_loads(name):
    recipe = PretrainingRecipe.load(name)
    assert recipe.about
    assert recipe.to_json()["name"] == name
    setting = Setting(
        mask=4, n_tokens=100, special=(0, 1, 2, 3, 4), width=8,
        entity_counts=np.ones(2, np.int64), graph=GRAPH, embeddings=torch.zeros(100, 8),
        encoder=torch.nn.Linear(1, 1),
    )  # fmt: skip
    for objective in recipe.objectives.values():
        objective.build(*[setting] * (recipe.stream_kind == "annotated_text"))


def test_overrides_are_typed_and_may_be_bare_words(write):
    path = write("mine.toml", SMALL)
    recipe = PretrainingRecipe.load(
        path,
        [
            "training.steps=7",
            "training.learning_rate=1",
            "objective.synonym_alignment.loss=infonce",
            "objective.synonym_alignment.parameters.temperature=0.1",
            'stream.languages=["en", "zh"]',
            "stream.extra_pairs=pairs.txt",
            "stream.lowercase=false",
            "encoder.name=/a = b/c",
        ],
    )
    assert recipe.name == "mine"
    assert recipe.training.steps == 7
    assert recipe.training.learning_rate == 1.0
    assert recipe.objectives["synonym_alignment"].loss == "infonce"
    assert recipe.objectives["synonym_alignment"].parameters == {"temperature": 0.1}
    assert recipe.stream.languages == ("en", "zh")
    assert recipe.stream.extra_pairs == Path("pairs.txt")
    assert recipe.stream.lowercase is False
    assert recipe.encoder.name == "/a = b/c"
    assert recipe.to_json()["stream"]["extra_pairs"] == "pairs.txt"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.stepz=7", r"training: unknown key 'stepz'; did you mean 'steps'"),
        ("training.steps=many", r"training.steps: expected int, found 'many'"),
        ("steps=7", r"--set: expected table.key=value, found 'steps=7'"),
        ("training.steps", r"--set: expected table.key=value"),
        ("trainin.steps=7", r"unknown key 'trainin'; did you mean 'training'"),
        ("objective.synonym_alinment.loss=x", r"objective: no objective is called .*did you mean"),
        ("objective.synonym_alignment=x", r"objective.synonym_alignment: expected a table"),
        ("encoder.name.x=1", r"--set encoder.name.x=1: name is no table"),
        (
            "stream.kind=texts",
            r"stream.kind: no stream is called 'texts'; known: annotated_text",
        ),
        ("stream.max_pair=1", r"stream: unknown key 'max_pair'; did you mean 'max_pairs'"),
        ("encoder.polling=cls", r"encoder: unknown key 'polling'; did you mean 'pooling'"),
    ],
)
def test_mistakes_are_named(write, override, message):
    with pytest.raises(ConfigError, match=message):
        PretrainingRecipe.load(write("mine.toml", SMALL), [override])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[encoder]\nname = "x"\n', "names no objective; known: synonym_alignment"),
        ("[objective.synonym_alignment]\n", r"expected either encoder\.name, .*; found neither"),
        (f'{SMALL}[new]\nkind = "bart"\n', r"or a table \[new\] .*; found both"),
        (
            '[new]\nkind = "bart"\n[objective.synonym_alignment]\n',
            r"bart is for stream\.kind = name_templates, found synonym_pairs",
        ),
        ("[new]\n[objective.synonym_alignment]\n", r"new: missing key 'kind'; known: bart"),
        ('encoder = "x"\n', "encoder: expected a table, found 'x'"),
        ("[encoder\n", "not valid TOML"),
    ],
)
def test_incomplete_recipes_are_refused(write, content, message):
    with pytest.raises(ConfigError, match=message):
        PretrainingRecipe.load(write("mine.toml", content))


def test_an_unknown_recipe():
    with pytest.raises(ConfigError, match=r"no recipe is called 'sapbart'; did you mean 'sapbert'"):
        PretrainingRecipe.load("sapbart")
    with pytest.raises(ConfigError, match=r"nothing.toml: cannot be read"):
        PretrainingRecipe.load("nothing.toml")


@pytest.mark.parametrize(
    ("recipe", "override", "message"),
    [
        ("mlm-cpu", "knowledge.vectors=V", r"mlm-cpu: has no knowledge layer to which"),
        (
            "kebiolm-cpu",
            "knowledge.layers.entity_memory.n_nearest=0",
            "n_nearest: expected at least 1",
        ),
        ("kebiolm-cpu", "encoder.pooling=cls", r"encoder\.pooling: determines how a text"),
        ("kebiolm-cpu", "objective.synonym_alignment.loss=circle", r"is for .* synonym_pairs"),
        ("sapbert-cpu", "objective.masked_tokens.mode=token", r"is for .* annotated_text"),
        ("sapbert-cpu", "encoder.dropout=0.1", r"encoder\.dropout: applies to models that"),
        (
            "genbioel-pretrain",
            "encoder.pooling=cls",
            r"encoder\.pooling: .* text becomes one vector",
        ),
        ("genbioel-pretrain", "encoder.dropout=1", r"dropout: expected a number from 0 to below 1"),
        ("genbioel-pretrain", "new.width=64", r"either encoder\.name, .* \[new\] .*; found both"),
        ("genbioel-pretrain-cpu", "encoder.dropout=0.1", r"has new\.dropout instead"),
        ("genbioel-pretrain-cpu", "encoder.decoder.layers=1", r"is for a given encoder; set"),
        ("sapbert-cpu", "encoder.decoder.layers=1", r"encoder\.decoder: applies to models that"),
        ("genbioel-pretrain", "encoder.decoder.layers=0", r"layers: expected at least 1, found 0"),
        ("genbioel-pretrain-cpu", "new.kind=gpt", r"new\.kind: no kind of new model is called"),
        ("genbioel-pretrain-cpu", "new.kind=bert", r"new\.kind: bert is for stream\.kind = "),
        ("genbioel-pretrain-cpu", "new.wdth=1", r"new: unknown key 'wdth'; did you mean 'width'"),
        ("genbioel-pretrain-cpu", "new.heads=5", r"heads: expected a divisor of the width 192"),
    ],
)
def test_what_a_stream_has_no_use_for_is_refused(recipe, override, message):
    with pytest.raises(ConfigError, match=message):
        PretrainingRecipe.load(recipe, [override])


def test_a_model_from_scratch_or_one_that_is_there():
    recipe = PretrainingRecipe.load("genbioel-pretrain-cpu", ["new.layers=1"])
    assert recipe.new_kind == "bart"
    assert recipe.new.layers == 1
    assert recipe.encoder.name == ""
    plain = recipe.to_json()
    assert plain["new"] == {"kind": "bart", **dataclasses.asdict(recipe.new)}
    plain.pop("name")
    plain["encoder"] = {"name": ""}
    assert PretrainingRecipe.from_values(recipe.name, plain).to_json()["new"] == plain["new"]
    begun = PretrainingRecipe.load(
        "genbioel-pretrain-cpu", ["encoder.name=some/bart", "encoder.dropout=0.2"]
    )
    assert begun.new is None
    assert (begun.encoder.name, begun.encoder.dropout) == ("some/bart", 0.2)
    with pytest.raises(ConfigError, match="found both"):
        PretrainingRecipe.load("genbioel-pretrain-cpu", ["encoder.name=some/bart", "new.layers=1"])
