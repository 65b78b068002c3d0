"""biograft grafts a medical knowledge base onto language models.

The names below are loaded on first use, so that ``import biograft`` stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.api import (
        annotate as annotate,
        evaluate as evaluate,
        finetune as finetune,
    )
    from biograft.documents import Document as Document
    from biograft.errors import BiograftError as BiograftError
    from biograft.frames import link_frame as link_frame
    from biograft.kb import (
        BuildConfig as BuildConfig,
        Concept as Concept,
        KnowledgeBase as KnowledgeBase,
        build_store as build_store,
    )
    from biograft.linking import Linker as Linker
    from biograft.nn import TextEncoder as TextEncoder
    from biograft.pretraining import pretrain as pretrain
    from biograft.recipes import Recipe as Recipe
    from biograft.sources import SourceConfig as SourceConfig, read_source as read_source

__version__ = "0.1.0"


__getattr__, __dir__, __all__ = lazify(__name__, "__version__")
