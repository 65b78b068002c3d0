"""The knowledge base: build one store from any sources, open it, ask it, export it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.kb.build import build_starter, build_store
    from biograft.kb.concept import (
        Concept,
        Definition,
        Identifier,
        Match,
        Name,
        Relation,
        SemanticType,
    )
    from biograft.kb.config import BuildConfig, NameRules
    from biograft.kb.exporting import EXPORTS, export
    from biograft.kb.provenance import fingerprint
    from biograft.kb.report import BuildReport, SourceReport
    from biograft.kb.searching import search
    from biograft.kb.store import KnowledgeBase

__all__ = [
    "EXPORTS",
    "BuildConfig",
    "BuildReport",
    "Concept",
    "Definition",
    "Identifier",
    "KnowledgeBase",
    "Match",
    "Name",
    "NameRules",
    "Relation",
    "SemanticType",
    "SourceReport",
    "build_starter",
    "build_store",
    "export",
    "fingerprint",
    "search",
]

_HOMES = {
    "BuildConfig": "biograft.kb.config",
    "BuildReport": "biograft.kb.report",
    "Concept": "biograft.kb.concept",
    "Definition": "biograft.kb.concept",
    "EXPORTS": "biograft.kb.exporting",
    "Identifier": "biograft.kb.concept",
    "KnowledgeBase": "biograft.kb.store",
    "Match": "biograft.kb.concept",
    "Name": "biograft.kb.concept",
    "NameRules": "biograft.kb.config",
    "Relation": "biograft.kb.concept",
    "SemanticType": "biograft.kb.concept",
    "SourceReport": "biograft.kb.report",
    "build_starter": "biograft.kb.build",
    "build_store": "biograft.kb.build",
    "export": "biograft.kb.exporting",
    "fingerprint": "biograft.kb.provenance",
    "search": "biograft.kb.searching",
}

__getattr__ = load_on_use(__name__, _HOMES)
