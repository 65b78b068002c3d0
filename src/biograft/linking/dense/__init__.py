"""Dense search: names and mentions as vectors of one encoder, nearest neighbours by similarity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.linking.dense.config import DenseConfig as DenseConfig
    from biograft.linking.dense.index import DenseIndex as DenseIndex


__getattr__, __dir__, __all__ = lazify(__name__)
