"""biograft grafts a medical knowledge base onto language models.

The names below are loaded on first use, so that ``import biograft`` stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

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


__getattr__ = load_on_use(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
