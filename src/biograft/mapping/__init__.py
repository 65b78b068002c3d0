"""Mapping of local terms, such as a column of a table, to concepts: one row a distinct term."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.mapping.config import MatchConfig as MatchConfig
    from biograft.mapping.decisions import (
        RELATIONS as RELATIONS,
        VERDICTS as VERDICTS,
        Decision as Decision,
    )
    from biograft.mapping.findings import MappedFindings as MappedFindings
    from biograft.mapping.formats import (
        MappingRun as MappingRun,
        concept_map as concept_map,
        format_of as format_of,
        read_earlier as read_earlier,
        without_foreign as without_foreign,
        write_mapping as write_mapping,
        write_set as write_set,
    )
    from biograft.mapping.learning import (
        LearningReport as LearningReport,
        forget as forget,
        learn as learn,
        write_pairs as write_pairs,
    )
    from biograft.mapping.matching import (
        ConceptMatch as ConceptMatch,
        as_set as as_set,
        match_stores as match_stores,
    )
    from biograft.mapping.note_learning import (
        FormLearningReport as FormLearningReport,
        learn_forms as learn_forms,
    )
    from biograft.mapping.review_check import check_review as check_review
    from biograft.mapping.review_files import (
        export_decisions as export_decisions,
        export_review as export_review,
        import_review as import_review,
    )
    from biograft.mapping.review_records import (
        BulkResult as BulkResult,
        ReviewFilter as ReviewFilter,
        ReviewItem as ReviewItem,
        ReviewTerm as ReviewTerm,
        SuggestedConcept as SuggestedConcept,
        TermDecision as TermDecision,
    )
    from biograft.mapping.review_sample import (
        ReviewSample as ReviewSample,
        draw_sample as draw_sample,
    )
    from biograft.mapping.review_store import ReviewStore as ReviewStore
    from biograft.mapping.reviewer_agreement import (
        ReviewAgreement as ReviewAgreement,
        review_agreement as review_agreement,
    )
    from biograft.mapping.rows import MappingRow as MappingRow
    from biograft.mapping.set_operations import (
        MappingConflict as MappingConflict,
        SetDiff as SetDiff,
        SetReport as SetReport,
        chain_sets as chain_sets,
        diff_sets as diff_sets,
        find_conflicts as find_conflicts,
        invert_set as invert_set,
        merge_sets as merge_sets,
    )
    from biograft.mapping.sets import (
        MappingSet as MappingSet,
        read_decisions as read_decisions,
    )
    from biograft.mapping.sssom import (
        concept_curie as concept_curie,
        concept_of as concept_of,
    )
    from biograft.mapping.standard import (
        StandardConcepts as StandardConcepts,
        StandardTarget as StandardTarget,
    )
    from biograft.mapping.terms import (
        EarlierDecisions as EarlierDecisions,
        SourceTerm as SourceTerm,
        TermMapping as TermMapping,
        distinct_terms as distinct_terms,
        map_terms as map_terms,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
