"""Annotated text as sequences of tokens with mentions: packed once, read in any order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.streams.annotated.batches import TextBatches as TextBatches
    from biograft.streams.annotated.building import open_packed as open_packed
    from biograft.streams.annotated.config import AnnotatedTextConfig as AnnotatedTextConfig
    from biograft.streams.annotated.counts import PackingCounts as PackingCounts
    from biograft.streams.annotated.packed import PackedText as PackedText


__getattr__, __dir__, __all__ = lazify(__name__)
