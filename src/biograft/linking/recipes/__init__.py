"""Recipes of trained linkers: a TOML file says what is trained on labelled mentions, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.linking.recipes.kinds import KINDS, Lesson, Outcome, RecipeKind
    from biograft.linking.recipes.recipe import LinkingRecipe, shipped_recipes
    from biograft.linking.recipes.running import finetune

__all__ = [
    "KINDS",
    "Lesson",
    "LinkingRecipe",
    "Outcome",
    "RecipeKind",
    "finetune",
    "shipped_recipes",
]

_HOMES = {
    "KINDS": "biograft.linking.recipes.kinds",
    "Lesson": "biograft.linking.recipes.kinds",
    "LinkingRecipe": "biograft.linking.recipes.recipe",
    "Outcome": "biograft.linking.recipes.kinds",
    "RecipeKind": "biograft.linking.recipes.kinds",
    "finetune": "biograft.linking.recipes.running",
    "shipped_recipes": "biograft.linking.recipes.recipe",
}

__getattr__ = load_on_use(__name__, _HOMES)
