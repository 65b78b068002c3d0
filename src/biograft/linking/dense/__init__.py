"""Dense candidates: names and mentions as vectors of one encoder, the nearest names found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.linking.dense.config import DenseConfig
    from biograft.linking.dense.index import DenseIndex

__all__ = ["DenseConfig", "DenseIndex"]

_HOMES = {
    "DenseConfig": "biograft.linking.dense.config",
    "DenseIndex": "biograft.linking.dense.index",
}

__getattr__ = load_on_use(__name__, _HOMES)
