"""Recipes of trained linkers: a TOML file says what is trained on labelled mentions, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.linking.recipes.kinds import (
        KINDS as KINDS,
        Lesson as Lesson,
        Outcome as Outcome,
        RecipeKind as RecipeKind,
    )
    from biograft.linking.recipes.recipe import (
        LinkingRecipe as LinkingRecipe,
        shipped_recipes as shipped_recipes,
    )
    from biograft.linking.recipes.running import finetune as finetune


__getattr__, __dir__, __all__ = lazify(__name__)
