"""Recipes of tasks: a TOML file says which task, with which encoder, and how it is trained."""

from biograft.tasks.recipes.recipe import TaskRecipe, shipped_recipes

__all__ = ["TaskRecipe", "shipped_recipes"]
