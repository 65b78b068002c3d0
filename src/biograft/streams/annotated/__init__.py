"""Annotated text as sequences of tokens with mentions: packed once, read in any order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.streams.annotated.batches import TextBatches
    from biograft.streams.annotated.building import open_packed
    from biograft.streams.annotated.config import AnnotatedTextConfig
    from biograft.streams.annotated.counts import PackingCounts
    from biograft.streams.annotated.packed import PackedText

__all__ = ["AnnotatedTextConfig", "PackedText", "PackingCounts", "TextBatches", "open_packed"]

_HOMES = {
    "AnnotatedTextConfig": "biograft.streams.annotated.config",
    "PackedText": "biograft.streams.annotated.packed",
    "PackingCounts": "biograft.streams.annotated.counts",
    "TextBatches": "biograft.streams.annotated.batches",
    "open_packed": "biograft.streams.annotated.building",
}

__getattr__ = load_on_use(__name__, _HOMES)
