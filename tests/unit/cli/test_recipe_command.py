"""``biograft recipe``: the list, and one recipe as TOML or JSON."""

from __future__ import annotations

import json
import tomllib

import pytest
from typer.testing import CliRunner

from biograft.cli import app
from biograft.errors import ConfigError
from biograft.recipe import Recipe


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["recipe", *arguments])
    if result.exception:
        raise result.exception
    return result.stdout


def test_a_shown_recipe_is_a_whole_recipe(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(run("show", "kebiolm-cpu", "--set", "training.epochs=7"), encoding="utf-8")
    values = tomllib.loads(path.read_text(encoding="utf-8"))
    assert values["training"]["epochs"] == 7
    assert "base" not in values
    shown, loaded = Recipe.load(path), Recipe.load("kebiolm-cpu", ["training.epochs=7"])
    assert {**shown.to_json(), "name": ""} == {**loaded.to_json(), "name": ""}
    assert json.loads(run("show", "kebiolm-cpu", "--json")) == {
        **values,
        "training": {**values["training"], "epochs": 2},
    }


@pytest.mark.parametrize(
    ("command", "recipe", "meant"),
    [
        ("pretrain", "ner", "biograft finetune ner"),
        ("finetune", "sapbert", "biograft pretrain sapbert"),
        ("finetune", "transe", "biograft graph embed KB --model transe"),
    ],
)
def test_a_recipe_of_another_command_names_it(tmp_path, command, recipe, meant):
    result = CliRunner().invoke(app, [command, recipe, "-o", str(tmp_path / "run")])
    assert isinstance(result.exception, ConfigError)
    assert meant in str(result.exception)
