"""Entity recognition (NER) with any encoder: documents to the entities in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.tasks.ner.config import NerConfig
    from biograft.tasks.ner.model import NerModel

__all__ = ["NerConfig", "NerModel"]

_HOMES = {
    "NerConfig": "biograft.tasks.ner.config",
    "NerModel": "biograft.tasks.ner.model",
}

__getattr__ = load_on_use(__name__, _HOMES)
