"""Pre-training: recipes with an encoder, a stream and objectives, and running them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.pretraining.recipe import (
        EncoderConfig as EncoderConfig,
        PretrainingRecipe as PretrainingRecipe,
    )
    from biograft.pretraining.run import PretrainResult as PretrainResult, pretrain as pretrain

__getattr__, __dir__, __all__ = lazify(__name__)
