"""The knowledge base: build one store from any sources, open it, ask it, export it."""

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
from biograft.kb.export import EXPORTS, export
from biograft.kb.report import BuildReport, SourceReport
from biograft.kb.search import search
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
    "search",
]
