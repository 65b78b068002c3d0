"""Recipes: all shipped ones load, ``base`` and ``without`` merge, mistakes are named."""

from __future__ import annotations

import json
import tomllib

import pytest

from biograft.config import to_toml
from biograft.errors import ConfigError
from biograft.recipe import RECIPE_KINDS, Recipe, read_recipe, shipped_recipes

BASE = """
kind = "graph"
about = "a base"
[model]
kind = "transe"
dim = 8
[training]
epochs = 3
batch = 16
"""


@pytest.fixture
def write(tmp_path):
    def file(name: str, text: str):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return file


@pytest.mark.parametrize("name", shipped_recipes())
def test_every_shipped_recipe_loads(name):
    recipe = Recipe.load(name)
    assert recipe.name == name
    assert recipe.about
    assert type(recipe).load(name) == recipe
    assert recipe.to_json()["kind"] == recipe.kind
    json.dumps(recipe.to_json(), allow_nan=False)


def test_recipes_are_listed_by_kind():
    by_kind = {kind: set(shipped_recipes(kind)) for kind in RECIPE_KINDS}
    assert set.union(*by_kind.values()) == set(shipped_recipes())
    assert sum(map(len, by_kind.values())) == len(shipped_recipes())
    assert {"sapbert", "combined-cpu"} <= by_kind["pretrain"]
    assert "genbioel-finetune-ncbi" in by_kind["linker"]
    assert "ner" in by_kind["task"]
    assert "transe" in by_kind["graph"]


def test_every_shipped_base_is_a_shipped_recipe():
    for path in shipped_recipes().values():
        base = tomllib.loads(path.read_text(encoding="utf-8")).get("base")
        assert base is None or base in shipped_recipes()


def test_a_base_is_merged_table_by_table(write):
    write("base.toml", BASE)
    child = write("child.toml", 'base = "base.toml"\n[model]\ndim = 4\n[loss]\nmargin = 2.0\n')
    recipe = Recipe.load(child, ["training.epochs=5"])
    assert (recipe.name, recipe.about) == ("child", "a base")
    assert (recipe.model.kind, recipe.model.dim, recipe.loss.margin) == ("transe", 4, 2.0)
    assert (recipe.training.epochs, recipe.training.batch) == (5, 16)


def test_bases_may_have_bases_and_shipped_names(write):
    write("middle.toml", 'base = "transr"\nmodel.dim = 6\n')
    recipe = Recipe.load(write("last.toml", 'base = "middle.toml"\nsampling.negatives = 2\n'))
    assert (recipe.model.kind, recipe.model.dim, recipe.sampling.negatives) == ("transr", 6, 2)


def test_values_and_tables_of_a_base_are_left_out(write):
    write("base.toml", BASE)
    path = write("child.toml", 'base = "base.toml"\nwithout = ["model.dim", "training"]\n')
    assert read_recipe(path) == {"kind": "graph", "about": "a base", "model": {"kind": "transe"}}


def test_a_change_can_leave_out_a_value_or_a_table():
    changes = ["-objective.context_entity_consistency", "-stream.substitution"]
    _, values = Recipe.resolve("embert", changes)
    assert "substitution" not in values["stream"]
    assert "context_entity_consistency" not in values["objective"]
    assert "entity_segmentation" in values["objective"]
    with pytest.raises(ConfigError, match=r"--set -stream\.x: there is no 'stream\.x'"):
        Recipe.resolve("embert", ["-stream.x"])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('base = "none"', "no recipe is called 'none'"),
        ('base = "none.toml"', "cannot be read"),
        ("base = 3", "expected the name of a recipe, found 3"),
        ('base = "transe"\nwithout = ["model.depth"]', "there is no 'model.depth'"),
        ('base = "transe"\nwithout = ["model.dim.x"]', "there is no 'model.dim.x'"),
        ('base = "transe"\nwithout = "model"', "expected a list of keys"),
        ('kind = "graph"\nwithout = ["model"]', "there is no base"),
        ('base = "mine.toml"', "mine.toml -> mine.toml"),
        ('base = "other.toml"', "mine.toml -> other.toml -> mine.toml"),
        ("", "missing key 'kind'; known: pretrain, linker, task, graph"),
        ('kind = "pretrian"', "did you mean 'pretrain'"),
        ("kind = ['task']", "no kind of recipe is called ['task']"),
        ('kind = "graph"\n[modell]', "unknown key 'modell'; did you mean 'model'"),
    ],
)
def test_mistakes_are_named(write, text, problem):
    write("other.toml", 'base = "mine.toml"')
    with pytest.raises(ConfigError) as caught:
        Recipe.load(write("mine.toml", text))
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("name", "kind", "command"),
    [
        ("ner", "linker", "finetune ner"),
        ("sapbert", "task", "pretrain sapbert"),
        ("transe", "pretrain", "graph embed KB --model transe"),
    ],
)
def test_a_recipe_of_another_kind_is_refused_with_its_command(name, kind, command):
    with pytest.raises(ConfigError, match=f"biograft {command}"):
        RECIPE_KINDS.load(kind).load(name)


@pytest.mark.parametrize("name", shipped_recipes())
def test_a_merged_recipe_is_written_as_toml(name):
    values = read_recipe(shipped_recipes()[name])
    assert tomllib.loads(to_toml(values)) == values
