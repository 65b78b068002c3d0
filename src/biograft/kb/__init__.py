"""The knowledge base: build one store from any sources, open it, ask it, export it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify as lazify

if TYPE_CHECKING:
    from biograft.kb.build import build_starter as build_starter, build_store as build_store
    from biograft.kb.config import BuildConfig as BuildConfig, NameRules as NameRules
    from biograft.kb.export import EXPORTS as EXPORTS, export as export
    from biograft.kb.manifest import BuildReport as BuildReport, SourceReport as SourceReport
    from biograft.kb.search import search as search
    from biograft.kb.store import (
        Concept as Concept,
        Definition as Definition,
        Identifier as Identifier,
        KnowledgeBase as KnowledgeBase,
        Match as Match,
        Name as Name,
        Relation as Relation,
        SemanticType as SemanticType,
        fingerprint as fingerprint,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
