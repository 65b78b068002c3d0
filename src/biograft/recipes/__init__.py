"""Recipes: TOML files that configure everything biograft trains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.recipes.recipe import (
        RECIPE_KINDS as RECIPE_KINDS,
        Recipe as Recipe,
        read_recipe as read_recipe,
        shipped_recipes as shipped_recipes,
    )

__getattr__, __dir__, __all__ = lazify(__name__)
