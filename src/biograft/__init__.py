"""biograft grafts a medical knowledge base onto language models.

The names below are loaded on first use, so that ``import biograft`` stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from biograft.errors import BiograftError
    from biograft.kb import BuildConfig, Concept, KnowledgeBase, build_store
    from biograft.sources import SourceConfig, read_source

__version__ = "0.1.0"

__all__ = [
    "BiograftError",
    "BuildConfig",
    "Concept",
    "KnowledgeBase",
    "SourceConfig",
    "__version__",
    "build_store",
    "read_source",
]

_HOMES = {
    "BiograftError": "biograft.errors",
    "BuildConfig": "biograft.kb",
    "Concept": "biograft.kb",
    "KnowledgeBase": "biograft.kb",
    "SourceConfig": "biograft.sources",
    "build_store": "biograft.kb",
    "read_source": "biograft.sources",
}


def __getattr__(name: str) -> Any:
    """Load a public name from the package it lives in (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'biograft' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
