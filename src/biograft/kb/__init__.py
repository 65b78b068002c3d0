"""The knowledge base: build one store from any sources, open it, ask it, export it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.kb.build import build_starter as build_starter, build_store as build_store
    from biograft.kb.concept import (
        Concept as Concept,
        Definition as Definition,
        Identifier as Identifier,
        Match as Match,
        Name as Name,
        Relation as Relation,
        SemanticType as SemanticType,
    )
    from biograft.kb.config import BuildConfig as BuildConfig, NameRules as NameRules
    from biograft.kb.exporting import EXPORTS as EXPORTS, export as export
    from biograft.kb.provenance import fingerprint as fingerprint
    from biograft.kb.report import BuildReport as BuildReport, SourceReport as SourceReport
    from biograft.kb.searching import search as search
    from biograft.kb.store import KnowledgeBase as KnowledgeBase


__getattr__, __dir__, __all__ = lazify(__name__)
