"""Recipes: every shipped one loads, overrides are typed, mistakes are named."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from biograft.errors import ConfigError
from biograft.recipe import shipped_recipes
from biograft.training.objectives import EntityGraph, Setting
from biograft.training.pretraining import PretrainingRecipe

SMALL = """
[encoder]
name = "some/folder"
[objective.synonym_alignment]
"""


GRAPH = EntityGraph(
    neighbours=np.array([[1], [0]]),
    relations=np.zeros((2, 1), np.int64),
    signs=np.ones((2, 1), np.int64),
    types=np.zeros(2, np.int64),
    counts=np.ones(2, np.int64),
    relation_vectors=np.zeros((1, 3), np.float32),
    projections=np.zeros((1, 3, 3), np.float32),
)


@pytest.mark.parametrize("name", shipped_recipes("pretrain"))
def test_every_shipped_recipe_loads(name):
    recipe = PretrainingRecipe.load(name)
    assert recipe.about
    assert recipe.to_json()["name"] == name
    setting = Setting(
        mask=4,
        n_tokens=100,
        special=(0, 1, 2, 3, 4),
        width=8,
        entity_counts=np.ones(2, np.int64),
        graph=GRAPH,
        embeddings=torch.zeros(100, 8),
        encoder=torch.nn.Linear(1, 1),
    )
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
    ("recipe", "override", "message"),
    [
        ("mlm-cpu", "knowledge.vectors=V", r"mlm-cpu: has no knowledge layer to which"),
        (
            "kebiolm-cpu",
            "knowledge.layers.entity_memory.n_nearest=0",
            "n_nearest: expected at least 1",
        ),
        ("kebiolm-cpu", "objective.synonym_alignment.loss=circle", r"is for .* synonym_pairs"),
        ("sapbert-cpu", "objective.masked_tokens.mode=token", r"is for .* annotated_text"),
        ("genbioel-pretrain-cpu", "encoder.dropout=0.1", r"has new\.dropout instead"),
        ("genbioel-pretrain-cpu", "encoder.decoder.layers=1", r"is for a given encoder; set"),
        ("genbioel-pretrain-cpu", "new.kind=bert", r"new\.kind: bert is for stream\.kind = "),
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
