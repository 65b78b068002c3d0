"""Recipes of tasks: the shipped ones load, what is wrong in one is said."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from biograft.errors import ConfigError
from biograft.recipes import shipped_recipes
from biograft.registry import load_object
from biograft.tasks import TASKS, TaskKind, TaskRecipe


@pytest.mark.parametrize("name", shipped_recipes("task"))
def test_every_shipped_recipe_loads(name):
    recipe = TaskRecipe.load(name)
    assert recipe.name == name
    assert recipe.about
    assert recipe.task in TASKS


@pytest.mark.parametrize("name", list(TASKS))
def test_every_kind_loads(name):
    assert isinstance(TASKS.load(name), TaskKind)


@pytest.mark.parametrize("name", list(TASKS))
def test_the_model_of_every_kind_is_found(name):
    kind = TASKS.load(name)
    model = load_object(kind.model)
    assert callable(model.from_examples)
    assert "config" in inspect.signature(model).parameters


def test_recipes_are_read_without_torch():
    """The registry imported the modules of the models: ten seconds for `recipe show`."""
    code = (
        "import sys; from biograft.recipes import Recipe, shipped_recipes\n"
        "for name in shipped_recipes(): Recipe.load(name)\n"
        "assert not {'torch', 'transformers'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_papers_settings():
    for name, length in (("ner", 512), ("relation", 256)):
        recipe = TaskRecipe.load(name)
        assert recipe.encoder.max_length == length
        assert recipe.search.learning_rates == (1e-5, 3e-5, 5e-5)
        assert len(recipe.search.seeds) == 5
        training = recipe.config.training
        assert (training.epochs, training.batch_size, training.warmup_ratio) == (60, 16, 0.1)


@pytest.mark.parametrize("name", ["matching", "inference", "classification", "ranking"])
def test_chinese_tasks_are_learned_too(name):
    recipe = TaskRecipe.load(name)
    assert recipe.task == name
    assert recipe.search.learning_rates == (2e-5, 4e-5, 6e-5)
    assert len(recipe.search.seeds) == 5
    assert (recipe.config.training.epochs, recipe.config.training.batch_size) == (4, 16)
    assert TaskRecipe.load(f"{name}-cpu").task == name


def test_chinese_entities_and_relations_have_the_settings_of_the_other_chinese_tasks():
    other = TaskRecipe.load("matching")
    for name in ("ner", "relation"):
        recipe = TaskRecipe.load(f"{name}-zh")
        assert (recipe.task, recipe.encoder.name) == (name, other.encoder.name)
        assert recipe.search == other.search
        assert recipe.config.training == other.config.training
    assert TaskRecipe.load("ner-zh").config.types == "keep"
    config = TaskRecipe.load("relation-zh").config
    assert (config.named, config.order) == (True, "roles")


def test_values_are_changed():
    recipe = TaskRecipe.load("ner-cpu", ["config.head=crf", "search.seeds=[4, 5]"])
    assert recipe.config.head == "crf"
    assert recipe.search.seeds == (4, 5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["config.heads=crf"], "unknown key 'heads'; did you mean 'head'"),
        (["search.seeds=[1, 1]"], "expected one or several different numbers"),
        (["search.choosing_seeds=2"], "choosing_seeds: expected 1 to 1"),
        (["search.learning_rates=[0]"], r"learning_rates\[0\]: expected a number above 0"),
        (["config.training.steps=5"], "steps: expected 0"),
        (["config.training.patience=-1"], "patience: expected at least 0"),
        (["model.name=x"], "unknown key 'model'"),
    ],
)
def test_what_is_wrong_is_said(changes, message):
    with pytest.raises(ConfigError, match=message):
        TaskRecipe.load("ner-cpu", changes)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("ranking-cpu", "config.loss=softmax", "loss: expected one of pairwise, listwise"),
        ("ranking-cpu", "config.margin=0", "margin: expected a number above 0"),
        ("ranking-cpu", "config.negatives=-1", "negatives: expected at least 0"),
        ("ranking-cpu", "config.questions=all", "questions: expected one of answered, single"),
        ("ranking-cpu", "config.dropout=1.0", "dropout: expected a number from 0 to below 1"),
        ("matching-cpu", "config.threshold=0.4", "unknown key 'threshold'"),
        ("inference-cpu", "config.dropout=1.0", "dropout: expected a number from 0 to below 1"),
        (
            "classification-cpu",
            "config.threshold=1.0",
            "threshold: expected a number above 0 and below 1",
        ),
    ],
)
def test_what_is_wrong_of_a_kind_is_said(name, change, message):
    with pytest.raises(ConfigError, match=message):
        TaskRecipe.load(name, [change])


def test_another_kind_is_refused():
    with pytest.raises(ConfigError, match=r"no kind of task is called 'poem'; known: .*relation"):
        TaskRecipe.from_values("mine", {"task": "poem"})
