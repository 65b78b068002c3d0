"""Recipes: an encoder, a stream, objectives and training in one TOML file; and running them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.recipes.pretraining import PretrainResult, pretrain
    from biograft.recipes.recipe import EncoderConfig, Recipe, shipped_recipes

__all__ = ["EncoderConfig", "PretrainResult", "Recipe", "pretrain", "shipped_recipes"]

_HOMES = {
    "EncoderConfig": "biograft.recipes.recipe",
    "PretrainResult": "biograft.recipes.pretraining",
    "Recipe": "biograft.recipes.recipe",
    "pretrain": "biograft.recipes.pretraining",
    "shipped_recipes": "biograft.recipes.recipe",
}

__getattr__ = load_on_use(__name__, _HOMES)
