"""biograft finds, checks and maps medical concepts, with any ontology, offline.

The names below are loaded on first use, so that ``import biograft`` stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.errors import BiograftError as BiograftError
    from biograft.evaluation import evaluate as evaluate
    from biograft.kb import (
        BuildConfig as BuildConfig,
        Concept as Concept,
        KnowledgeBase as KnowledgeBase,
        build_store as build_store,
    )
    from biograft.kb.sources import SourceConfig as SourceConfig, read_source as read_source
    from biograft.linking import Linker as Linker
    from biograft.linking.annotation import annotate as annotate
    from biograft.linking.frames import link_frame as link_frame
    from biograft.models import TextEncoder as TextEncoder
    from biograft.opening import link as link, load as load
    from biograft.recipe import Recipe as Recipe
    from biograft.text.documents import Document as Document
    from biograft.training.finetune import finetune as finetune
    from biograft.training.pretraining import pretrain as pretrain

__version__ = "0.2.0"


__getattr__, __dir__, __all__ = lazify(__name__, "__version__")
