"""Recipes of tasks: the shipped ones load, what is wrong in one is said."""

from __future__ import annotations

import subprocess
import sys

import pytest

from biograft.errors import ConfigError
from biograft.tasks import TaskRecipe


def test_recipes_are_read_without_torch():
    """The registry imported the modules of the models: ten seconds for `recipe show`."""
    code = (
        "import sys; from biograft.recipes import Recipe, shipped_recipes\n"
        "for name in shipped_recipes(): Recipe.load(name)\n"
        "assert not {'torch', 'transformers'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


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
