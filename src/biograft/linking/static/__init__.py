"""Static encoders: vectors of names from a table of tokens, distilled from a transformers model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.linking.static.config import (
        StaticConfig as StaticConfig,
        StaticTraining as StaticTraining,
    )
    from biograft.linking.static.encoder import StaticEncoder as StaticEncoder


__getattr__, __dir__, __all__ = lazify(__name__)
