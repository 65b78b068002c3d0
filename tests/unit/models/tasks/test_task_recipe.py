"""Recipes of tasks: the shipped ones load, what is wrong in one is said."""

from __future__ import annotations

import subprocess
import sys


def test_recipes_are_read_without_torch():
    """The registry imported the modules of the models: ten seconds for `recipe show`."""
    code = (
        "import sys; from biograft.recipe import Recipe, shipped_recipes\n"
        "for name in shipped_recipes(): Recipe.load(name)\n"
        "assert not {'torch', 'transformers'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
