"""Recipes of trained linkers: the shipped ones, files, overrides and refusals."""

from __future__ import annotations

import pytest
from one_writer import held_elsewhere

from biograft.errors import ConfigError, OutputError
from biograft.recipe import shipped_recipes
from biograft.training import RUN, start_run
from biograft.training.linkers import LINKERS, LinkerRecipe
from biograft.training.run_folder import remove_run

RANKER = 'linker = "ranker"\n[config]\nepochs = 3\n[data]\ntrain = ["a", "b"]\nformat = "biosyn"\n'


@pytest.mark.parametrize("name", shipped_recipes("linker"))
def test_every_shipped_recipe_loads(name):
    recipe = LinkerRecipe.load(name)
    assert recipe.about
    assert isinstance(recipe.config, LINKERS.load(recipe.linker).config)
    assert recipe.to_json()["name"] == name


def test_there_is_a_shipped_recipe_of_every_kind():
    assert {LinkerRecipe.load(name).linker for name in shipped_recipes("linker")} == set(LINKERS)


def test_the_shipped_ranker_is_what_the_library_does_by_itself():
    assert LinkerRecipe.load("linker-ranker").config == LINKERS.load("ranker").config()


def test_a_file_with_data_and_overrides(write):
    path = write("mine.toml", RANKER)
    recipe = LinkerRecipe.load(path, ["config.hidden=4", "data.types=['Disease']"])
    assert (recipe.name, recipe.linker, recipe.encoder) == ("mine", "ranker", None)
    assert (recipe.config.epochs, recipe.config.hidden, recipe.config.folds) == (3, 4, 5)
    assert (recipe.data.train, recipe.data.format) == (("a", "b"), "biosyn")
    assert recipe.data.types == ("Disease",)


def test_the_encoder_goes_where_the_kind_has_it():
    assert LinkerRecipe.load("linker-encoder", encoder="E").encoder.name == "E"
    assert LinkerRecipe.load("linker-encoder", encoder="E").encoder.pooling == "cls"
    assert LinkerRecipe.load("linker-ranker", encoder='a "b"').encoder.name == 'a "b"'
    assert LinkerRecipe.load("linker-rerank", encoder="E").config.encoder == "E"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "recipe r: missing key 'linker'; known: ranker, encoder, rerank"),
        ("linker = 'encode'", "no kind of linker is called 'encode'; did you mean 'encoder'"),
        ("linker = 3", "no kind of linker is called 3"),
        ("linker = ['ranker']", "no kind of linker is called"),
        ("linker = 'ranker'\nconfigs = 1", "unknown key 'configs'; did you mean 'config'"),
        ("linker = 'ranker'\nconfig = 1", "config: expected a table, found 1"),
        ("linker = 'ranker'\n[config]\nepoch = 1", "config: unknown key 'epoch'; did you mean 'ep"),
        ("linker = 'ranker'\n[config]\nepochs = 0", "epochs: expected at least 1, found 0"),
        (
            "linker = 'ranker'\n[data]\ntrains = 1",
            "data: unknown key 'trains'; did you mean 'train",
        ),
        ("linker = 'ranker'\n[data]\ntrain = 'a'", "data.train: expected a list, found 'a'"),
        ("linker = 'encoder'", "missing key 'encoder.name'"),
        ("linker = 'encoder'\n[encoder]\npooling = 'cls'", "encoder: missing key 'name'"),
        ("linker = 'rerank'", "config: missing key 'encoder'"),
        ("linker = 'rerank'\n[encoder]\nname = 'E'", "unknown key 'encoder'"),
    ],
)
def test_what_is_wrong_is_said(write, text, problem):
    with pytest.raises(ConfigError) as caught:
        LinkerRecipe.load(write("r.toml", text))
    assert problem in str(caught.value)


def test_names_and_overrides_that_are_none(tmp_path):
    with pytest.raises(ConfigError, match="no recipe is called 'linker-ranked'; did you mean"):
        LinkerRecipe.load("linker-ranked")
    with pytest.raises(ConfigError, match="cannot be read"):
        LinkerRecipe.load(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="config: unknown key 'epoch'"):
        LinkerRecipe.load("linker-ranker", ["config.epoch=3"])
    with pytest.raises(ConfigError, match=r"--set: expected table\.key=value, found 'epochs=3'"):
        LinkerRecipe.load("linker-ranker", ["epochs=3"])


def test_a_run_at_work_is_neither_joined_nor_removed(tmp_path):
    """--overwrite removed the folder of a run that was still being written."""
    run = tmp_path / "run"
    start_run(run, {}, {})
    with held_elsewhere(run), pytest.raises(OutputError):
        remove_run(run)
    assert RUN.is_at(run)
    remove_run(run)
    assert not run.exists()
