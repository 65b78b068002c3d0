"""Entity recognition (NER) with any encoder: documents to the entities in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.tasks.ner.config import NerConfig as NerConfig
    from biograft.tasks.ner.model import NerModel as NerModel


__getattr__, __dir__, __all__ = lazify(__name__)
