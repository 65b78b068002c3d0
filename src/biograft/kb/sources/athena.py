"""OMOP vocabularies as Athena delivers them: a folder of tab-separated files named CONCEPT.csv, ...

A concept has the id ``OMOP:201826``; its code in its own vocabulary (``SNOMED:44054006``) is an
alternate id. What is standard, and what only classifies, is a type beside the domain. Concepts that
are no longer valid are left out, with the concepts that replace them.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from biograft.kb.records import (
    CLASSES,
    IS_A,
    MAPS_TO,
    MAPS_TO_VALUE,
    REPLACED_BY,
    IdKind,
    IdRecord,
    NameKind,
    NameRecord,
    RelationRecord,
    TypeRecord,
)
from biograft.kb.sources.delimited import Release, RowChecker, headed, read_rows, to_block
from biograft.kb.sources.format import Block, Format, Item, SourceConfig
from biograft.kb.sources.log import ReadLog

_RELEASE = Release(
    layouts={
        "VOCABULARY.csv": headed(
            "vocabulary_id vocabulary_name vocabulary_reference vocabulary_version "
            "vocabulary_concept_id",
            wanted="vocabulary_id vocabulary_version",
        ),
        "CONCEPT.csv": headed(
            "concept_id concept_name domain_id vocabulary_id concept_class_id standard_concept "
            "concept_code valid_start_date valid_end_date invalid_reason",
            wanted="concept_id concept_name domain_id vocabulary_id standard_concept concept_code "
            "invalid_reason",
        ),
        "CONCEPT_SYNONYM.csv": headed(
            "concept_id concept_synonym_name language_concept_id",
            wanted="concept_id concept_synonym_name language_concept_id",
        ),
        "RELATIONSHIP.csv": headed(
            "relationship_id relationship_name is_hierarchical defines_ancestry "
            "reverse_relationship_id relationship_concept_id",
            wanted="relationship_id reverse_relationship_id",
        ),
        "CONCEPT_RELATIONSHIP.csv": headed(
            "concept_id_1 concept_id_2 relationship_id valid_start_date valid_end_date "
            "invalid_reason",
            wanted="concept_id_1 concept_id_2 relationship_id invalid_reason",
        ),
        "CONCEPT_ANCESTOR.csv": headed(
            "ancestor_concept_id descendant_concept_id min_levels_of_separation "
            "max_levels_of_separation",
            wanted="ancestor_concept_id descendant_concept_id min_levels_of_separation",
        ),
    },
    main="CONCEPT.csv",
    remedy="name the folder with CONCEPT.csv",
)

_STANDARD = dict(zip("SC", CLASSES, strict=True))
_SUCCESSORS = {
    **dict.fromkeys(REPLACED_BY, IdKind.REPLACED),
    "Concept poss_eq to": IdKind.CONSIDER,
    "Concept alt_to to": IdKind.CONSIDER,
    "Concept was_a to": IdKind.CONSIDER,
    MAPS_TO: IdKind.CONSIDER,
}
"""Relationships of a concept that is not valid any more to what takes its place."""
_IS_A = "Is a"
_PREFERRED_DIRECTIONS = (_IS_A, MAPS_TO, MAPS_TO_VALUE, *REPLACED_BY)
_LANGUAGES = {"4180186": "en", "4182511": "es", "4182948": "zh"}
"""Concept of a language -> its code, for bundles without the concepts of languages."""
_LANGUAGE_NAMES = dict(
    pair.split(":")
    for pair in "English:en Spanish:es Chinese:zh French:fr German:de Italian:it Portuguese:pt "
    "Dutch:nl Japanese:ja Korean:ko Russian:ru Polish:pl Swedish:sv Danish:da Norwegian:no "
    "Finnish:fi Czech:cs Estonian:et Turkish:tr Ukrainian:uk".split()
)


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield names, types and codes of the concepts, then synonyms, relations and parents."""
    bundle = _Bundle(config, log)
    steps = {
        "VOCABULARY.csv": bundle.note_versions,
        "CONCEPT.csv": bundle.concepts,
        "CONCEPT_SYNONYM.csv": bundle.synonyms,
        "RELATIONSHIP.csv": bundle.find_reverses,
        "CONCEPT_RELATIONSHIP.csv": bundle.relations,
        "CONCEPT_ANCESTOR.csv": bundle.parents,
    }
    files = _RELEASE.files(config.path, log)
    for kind, layout in _RELEASE.layouts.items():
        if kind not in files:
            if config.path.is_dir() and kind != "VOCABULARY.csv":
                log.note(f"there is no {kind}")
            continue
        for rows in read_rows(files[kind], log, layout, config.encoding):
            for column in layout.wanted:
                if "concept_id" in column:
                    is_number = (_numbers(rows, column) >= 0).fill_null(False)
                    rows.reject_unless(is_number, f"{column} is no number")
            yield from steps[kind](rows)


def _id(column: str) -> pl.Expr:
    return pl.concat_str(pl.lit("OMOP:"), column)


def _numbers(rows: RowChecker, column: str) -> pl.Series:
    """Return ids as numbers, which are compared faster; null for what is no number."""
    return rows.column(column).cast(pl.Int64, strict=False)


class _Bundle:
    """State while the files of a bundle are read: invalid concepts, languages, reverses."""

    def __init__(self, config: SourceConfig, log: ReadLog) -> None:
        self._config, self._log = config, log
        self._languages = dict(_LANGUAGES)
        self._left_out = pl.Series(dtype=pl.Int64)
        self._reverses: set[str] = {"Subsumes", "Mapped from", "Value mapped from"}

    def note_versions(self, rows: RowChecker) -> Iterator[Block]:
        """Note the versions of the vocabularies."""
        for name, version in rows.frame.select("vocabulary_id", "vocabulary_version").iter_rows():
            if version and (name == "None" or name in self._config.vocabularies):
                self._log.note(f"data version: {version}")
        yield from ()

    def concepts(self, rows: RowChecker) -> Iterator[Block]:
        """Yield the name, the types and the code of each valid concept."""
        whole = rows.column("concept_id")
        self._learn_languages(rows.frame)
        rows.filter_among("vocabulary_id", self._config.vocabularies, "vocabulary")
        rows.reject_unless(rows.column("concept_name").str.strip_chars() != "", "no name")
        if not self._config.keep_suppressed:
            rows.filter_unless(rows.column("invalid_reason") == "", "not valid any more")
        frame, concept = rows.frame, _id("concept_id")
        left_out = whole.filter(~whole.is_in(frame["concept_id"].implode()))
        self._left_out = pl.concat([self._left_out, left_out.cast(pl.Int64)])
        self._log.leave_out("OMOP:" + left_out)
        yield to_block(
            NameRecord,
            frame,
            concept=concept,
            text="concept_name",
            kind=pl.lit(NameKind.PREFERRED),
            source="vocabulary_id",
        )
        for part, kind in (
            (pl.col("domain_id") != "", pl.col("domain_id")),
            (
                pl.col("standard_concept").is_in(list(_STANDARD)),
                pl.col("standard_concept").replace(_STANDARD),
            ),
        ):
            yield to_block(TypeRecord, frame.filter(part), concept=concept, type=kind, label=kind)
        code = pl.concat_str("vocabulary_id", pl.lit(":"), "concept_code")
        yield to_block(
            IdRecord, frame.filter(pl.col("concept_code") != ""), concept=concept, id=code
        )

    def _learn_languages(self, frame: pl.DataFrame) -> None:
        named = frame.select("concept_id", "concept_name").filter(
            pl.col("concept_name").str.ends_with(" language")
        )
        for concept, name in named.iter_rows():
            if code := _LANGUAGE_NAMES.get(name.removesuffix(" language")):
                self._languages[concept] = code

    def synonyms(self, rows: RowChecker) -> Iterator[Block]:
        """Yield the other names."""
        self._drop_left_out(rows, "concept_id")
        rows.reject_unless(rows.column("concept_synonym_name").str.strip_chars() != "", "no name")
        known = rows.column("language_concept_id").is_in(list(self._languages))
        rows.doubt(~known, "unknown language, read as English")
        language = pl.col("language_concept_id").replace_strict(self._languages, default="en")
        yield to_block(
            NameRecord,
            rows.frame,
            concept=_id("concept_id"),
            text="concept_synonym_name",
            language=language,
        )

    def _drop_left_out(self, rows: RowChecker, *columns: str) -> None:
        for column in columns if len(self._left_out) else ():
            kept = ~_numbers(rows, column).is_in(self._left_out.implode())
            rows.filter_unless(kept, "of a concept that is left out")

    def find_reverses(self, rows: RowChecker) -> Iterator[Block]:
        """Choose one direction of each relationship; the rows of the other one say the same."""
        pairs = rows.frame.select("relationship_id", "reverse_relationship_id")
        for name, reverse in pairs.iter_rows():
            chosen = min(
                (name, reverse),
                key=lambda each: (
                    each not in _PREFERRED_DIRECTIONS,
                    each.endswith((" of", " from", " by")),
                    each,
                ),
            )
            if name != reverse:
                self._reverses.add(reverse if chosen == name else name)
        self._reverses.difference_update(_PREFERRED_DIRECTIONS)
        yield from ()

    def relations(self, rows: RowChecker) -> Iterator[Block]:
        """Yield the valid relations, each in one direction, and what replaces invalid concepts."""
        rows.filter_unless(rows.column("invalid_reason") == "", "relation not valid any more")
        reverse = rows.column("relationship_id").is_in(list(self._reverses))
        rows.filter_unless(~reverse, "reverse of another relation")
        itself = rows.column("concept_id_1") == rows.column("concept_id_2")
        rows.filter_unless(~itself, "relation of a concept to itself")
        first, second = _id("concept_id_1"), _id("concept_id_2")
        if not self._config.keep_suppressed and len(self._left_out):
            retired = _numbers(rows, "concept_id_1").is_in(self._left_out.implode())
            named = retired & rows.column("relationship_id").is_in(list(_SUCCESSORS))
            kind = pl.col("relationship_id").replace_strict(_SUCCESSORS, return_dtype=pl.String)
            yield to_block(IdRecord, rows.frame.filter(named), concept=second, id=first, kind=kind)
            rows.frame = rows.frame.filter(~named)
        self._drop_left_out(rows, "concept_id_1", "concept_id_2")
        relation = pl.col("relationship_id").replace({_IS_A: IS_A})
        yield to_block(RelationRecord, rows.frame, head=first, relation=relation, tail=second)

    def parents(self, rows: RowChecker) -> Iterator[Block]:
        """Yield the direct ancestors as parents."""
        direct = rows.column("min_levels_of_separation") == "1"
        rows.filter_unless(direct, "ancestor that is no parent")
        self._drop_left_out(rows, "ancestor_concept_id", "descendant_concept_id")
        yield to_block(
            RelationRecord,
            rows.frame,
            head=_id("descendant_concept_id"),
            relation=pl.lit(IS_A),
            tail=_id("ancestor_concept_id"),
        )


FORMAT = Format(_RELEASE.recognise, read)
