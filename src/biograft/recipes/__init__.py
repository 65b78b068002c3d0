"""Recipes: an encoder, a stream, objectives and training in one TOML file; and running them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.recipes.pretraining import PretrainResult as PretrainResult, pretrain as pretrain
    from biograft.recipes.recipe import (
        EncoderConfig as EncoderConfig,
        Recipe as Recipe,
        shipped_recipes as shipped_recipes,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
