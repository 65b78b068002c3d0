"""The knowledge base: build a store from any sources, open it, search it and export it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.kb.build import (
        build_starter as build_starter,
        build_store as build_store,
    )
    from biograft.kb.changes import Change as Change
    from biograft.kb.code_systems import CodeSystems as CodeSystems, parse_systems as parse_systems
    from biograft.kb.concepts import (
        merge_concepts as merge_concepts,
    )
    from biograft.kb.config import (
        BuildConfig as BuildConfig,
        NameRules as NameRules,
    )
    from biograft.kb.diff import (
        CHANGES as CHANGES,
        StoreDiff as StoreDiff,
        diff_stores as diff_stores,
    )
    from biograft.kb.export import (
        EXPORTS as EXPORTS,
        export_store as export_store,
    )
    from biograft.kb.expressions import Expression as Expression
    from biograft.kb.fingerprints import (
        fingerprint as fingerprint,
        store_fingerprint as store_fingerprint,
    )
    from biograft.kb.hierarchy import (
        Hierarchy as Hierarchy,
    )
    from biograft.kb.manifest import (
        BuildReport as BuildReport,
        SourceReport as SourceReport,
    )
    from biograft.kb.search import (
        NameSuggestions as NameSuggestions,
        search_names as search_names,
    )
    from biograft.kb.store import (
        Concept as Concept,
        ConceptRelation as ConceptRelation,
        Definition as Definition,
        Identifier as Identifier,
        KnowledgeBase as KnowledgeBase,
        Match as Match,
        Name as Name,
        RelationCount as RelationCount,
        Replacement as Replacement,
        SemanticType as SemanticType,
    )
    from biograft.kb.value_set_files import (
        ValueSetMembers as ValueSetMembers,
        diff_value_sets as diff_value_sets,
        make_value_set as make_value_set,
        read_value_set as read_value_set,
        write_value_set as write_value_set,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
