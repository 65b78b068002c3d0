"""OMOP vocabularies as Athena delivers them: a folder of tab-separated files named CONCEPT.csv, ...

A concept has the id ``OMOP:201826``; its code in its own vocabulary (``SNOMED:44054006``) is an
alternate id. What is standard, and what only classifies, is a type beside the domain. Concepts that
are no longer valid are left out, with the concepts that replace them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from biograft.errors import UnrecognisedError
from biograft.kb.records import (
    IS_A,
    IdKind,
    IdRecord,
    NameKind,
    NameRecord,
    RelationRecord,
    TypeRecord,
)
from biograft.kb.sources.delimited import DelimitedLayout, RowChecker, read_rows
from biograft.kb.sources.format import Block, Format, Item, Probe, SourceConfig, look_at
from biograft.kb.sources.log import ReadLog


def _layout(columns: str) -> DelimitedLayout:
    return DelimitedLayout(columns=tuple(columns.split()), separator="\t", header=True)


LAYOUTS = {
    "VOCABULARY": _layout(
        "vocabulary_id vocabulary_name vocabulary_reference vocabulary_version "
        "vocabulary_concept_id"
    ),
    "CONCEPT": _layout(
        "concept_id concept_name domain_id vocabulary_id concept_class_id standard_concept "
        "concept_code valid_start_date valid_end_date invalid_reason"
    ),
    "CONCEPT_SYNONYM": _layout("concept_id concept_synonym_name language_concept_id"),
    "RELATIONSHIP": _layout(
        "relationship_id relationship_name is_hierarchical defines_ancestry "
        "reverse_relationship_id relationship_concept_id"
    ),
    "CONCEPT_RELATIONSHIP": _layout(
        "concept_id_1 concept_id_2 relationship_id valid_start_date valid_end_date invalid_reason"
    ),
    "CONCEPT_ANCESTOR": _layout(
        "ancestor_concept_id descendant_concept_id min_levels_of_separation "
        "max_levels_of_separation"
    ),
}
"""The columns of each file; files are read in this order."""

_STANDARD = {"S": "Standard", "C": "Classification"}
_SUCCESSORS = {
    "Concept replaced by": IdKind.REPLACED,
    "Concept same_as to": IdKind.REPLACED,
    "Concept poss_eq to": IdKind.CONSIDER,
    "Concept alt_to to": IdKind.CONSIDER,
    "Concept was_a to": IdKind.CONSIDER,
    "Maps to": IdKind.CONSIDER,
}
"""Relationships of a concept that is not valid any more to what takes its place."""
_IS_A, _MAPS_TO = "Is a", "Maps to"
_PREFERRED_DIRECTIONS = (_IS_A, _MAPS_TO, "Maps to value", "Concept replaced by")
_LANGUAGES = {
    "4180186": "en",
    "4182511": "es",
    "4182948": "zh",
}
"""Concept of a language -> its code, for bundles without the concepts of languages."""
_LANGUAGE_NAMES = {
    "English": "en",
    "Spanish": "es",
    "Chinese": "zh",
    "French": "fr",
    "German": "de",
    "Italian": "it",
    "Portuguese": "pt",
    "Dutch": "nl",
    "Japanese": "ja",
    "Korean": "ko",
    "Russian": "ru",
    "Polish": "pl",
    "Swedish": "sv",
    "Danish": "da",
    "Norwegian": "no",
    "Finnish": "fi",
    "Czech": "cs",
    "Estonian": "et",
    "Turkish": "tr",
    "Ukrainian": "uk",
}


def recognise(probe: Probe) -> bool:
    """A folder with CONCEPT.csv, or a file with the header of one of the files."""
    if probe.members:
        return any(_kind_of_name(name) == "CONCEPT" for name in probe.members)
    return bool(_kind_of_header(probe))


def _kind_of_name(name: str) -> str:
    kind = name.upper().removesuffix(".GZ").removesuffix(".CSV")
    return kind if kind in LAYOUTS else ""


def _kind_of_header(probe: Probe) -> str:
    header = tuple(next(iter(probe.lines(1)), "").split("\t"))
    return next((kind for kind, layout in LAYOUTS.items() if layout.columns == header), "")


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield names, types and codes of the concepts, then synonyms, relations and parents."""
    bundle = _Bundle(config, log)
    steps = {
        "VOCABULARY": bundle.note_versions,
        "CONCEPT": bundle.concepts,
        "CONCEPT_SYNONYM": bundle.synonyms,
        "RELATIONSHIP": bundle.find_reverses,
        "CONCEPT_RELATIONSHIP": bundle.relations,
        "CONCEPT_ANCESTOR": bundle.parents,
    }
    files = _files(config.path)
    for kind, step in steps.items():
        if kind in files:
            yield from step(files[kind])
        elif config.path.is_dir() and kind != "VOCABULARY":
            log.note(f"there is no {kind}.csv")


def _files(path: Path) -> dict[str, Path]:
    if path.is_dir():
        named = {_kind_of_name(each.name): each for each in sorted(path.iterdir())}
        if found := {kind: each for kind, each in named.items() if kind}:
            return found
        raise UnrecognisedError("holds no CONCEPT.csv", path=path, remedy="name its folder")
    probe = look_at(path)
    if kind := _kind_of_header(probe):
        return {kind: path}
    raise UnrecognisedError(
        f"is none of {', '.join(f'{kind}.csv' for kind in LAYOUTS)}",
        path=path,
        line=1,
        text=next(iter(probe.lines(1)), ""),
        remedy="name the folder with CONCEPT.csv",
    )


def _id(column: str) -> pl.Expr:
    return pl.concat_str(pl.lit("OMOP:"), column)


def _numbers(rows: RowChecker, column: str) -> pl.Series:
    """Return ids as numbers, which are compared faster; null for what is no number."""
    return rows.column(column).cast(pl.Int64, strict=False)


class _Bundle:
    """What is known of a bundle while its files are read: invalid concepts, languages, reverses."""

    def __init__(self, config: SourceConfig, log: ReadLog) -> None:
        self._config, self._log = config, log
        self._languages = dict(_LANGUAGES)
        self._left_out = pl.Series(dtype=pl.Int64)
        self._reverses: set[str] = {"Subsumes", "Mapped from", "Value mapped from"}

    def _rows(self, path: Path, kind: str, columns: str, ids: str) -> Iterator[RowChecker]:
        """Read columns of a file; rows in which a column of ``ids`` is no number are rejected."""
        wanted = columns.split()
        for frame in read_rows(path, self._log, LAYOUTS[kind], wanted, self._config.encoding):
            rows = RowChecker(frame, path, self._log, "\t")
            for column in ids.split():
                numbers = _numbers(rows, column)
                rows.reject_unless((numbers >= 0).fill_null(False), f"{column} is no number")
            yield rows

    def note_versions(self, path: Path) -> Iterator[Block]:
        """Note the versions of the vocabularies."""
        for rows in self._rows(path, "VOCABULARY", "vocabulary_id vocabulary_version", ""):
            for name, version in rows.frame.select(
                "vocabulary_id", "vocabulary_version"
            ).iter_rows():
                if version and (name == "None" or name in self._config.vocabularies):
                    self._log.note(f"data version: {version}")
        yield from ()

    def concepts(self, path: Path) -> Iterator[Block]:
        """Yield the name, the types and the code of each valid concept."""
        columns = (
            "concept_id concept_name domain_id vocabulary_id standard_concept concept_code "
            "invalid_reason"
        )
        for rows in self._rows(path, "CONCEPT", columns, "concept_id"):
            whole = rows.column("concept_id")
            self._learn_languages(rows.frame)
            rows.filter_among("vocabulary_id", self._config.vocabularies, "vocabulary")
            rows.reject_unless(rows.column("concept_name").str.strip_chars() != "", "no name")
            if not self._config.keep_suppressed:
                rows.filter_unless(rows.column("invalid_reason") == "", "not valid any more")
            frame = rows.frame
            left_out = whole.filter(~whole.is_in(frame["concept_id"].implode()))
            self._left_out = pl.concat([self._left_out, left_out.cast(pl.Int64)])
            self._log.leave_out("OMOP:" + left_out)
            yield Block(
                NameRecord,
                frame.select(
                    concept=_id("concept_id"),
                    text="concept_name",
                    language=pl.lit("en"),
                    kind=pl.lit(str(NameKind.PREFERRED)),
                    source="vocabulary_id",
                    line="line",
                ),
            )
            standard = frame.filter(pl.col("standard_concept").is_in(list(_STANDARD)))
            for part, kind in (
                (frame.filter(pl.col("domain_id") != ""), pl.col("domain_id")),
                (standard, pl.col("standard_concept").replace(_STANDARD)),
            ):
                yield Block(
                    TypeRecord,
                    part.select(
                        concept=_id("concept_id"),
                        type=kind,
                        label=kind,
                        tree=pl.lit(""),
                        line="line",
                    ),
                )
            yield Block(
                IdRecord,
                frame.filter(pl.col("concept_code") != "").select(
                    concept=_id("concept_id"),
                    id=pl.concat_str("vocabulary_id", pl.lit(":"), "concept_code"),
                    kind=pl.lit(str(IdKind.ALTERNATE)),
                    line="line",
                ),
            )

    def _learn_languages(self, frame: pl.DataFrame) -> None:
        named = frame.select("concept_id", "concept_name").filter(
            pl.col("concept_name").str.ends_with(" language")
        )
        for concept, name in named.iter_rows():
            if code := _LANGUAGE_NAMES.get(name.removesuffix(" language")):
                self._languages[concept] = code

    def synonyms(self, path: Path) -> Iterator[Block]:
        """Yield the other names."""
        columns = "concept_id concept_synonym_name language_concept_id"
        for rows in self._rows(path, "CONCEPT_SYNONYM", columns, "concept_id language_concept_id"):
            self._drop_left_out(rows, "concept_id")
            rows.reject_unless(
                rows.column("concept_synonym_name").str.strip_chars() != "", "no name"
            )
            known = rows.column("language_concept_id").is_in(list(self._languages))
            rows.doubt(~known, "unknown language, read as English")
            yield Block(
                NameRecord,
                rows.frame.select(
                    concept=_id("concept_id"),
                    text="concept_synonym_name",
                    language=pl.col("language_concept_id").replace_strict(
                        self._languages, default="en"
                    ),
                    kind=pl.lit(str(NameKind.SYNONYM)),
                    source=pl.lit(""),
                    line="line",
                ),
            )

    def _drop_left_out(self, rows: RowChecker, column: str) -> None:
        if len(self._left_out):
            kept = ~_numbers(rows, column).is_in(self._left_out.implode())
            rows.filter_unless(kept, "of a concept that is left out")

    def find_reverses(self, path: Path) -> Iterator[Block]:
        """Choose one direction of each relationship; the rows of the other one say the same."""
        for rows in self._rows(path, "RELATIONSHIP", "relationship_id reverse_relationship_id", ""):
            for name, reverse in rows.frame.select(
                "relationship_id", "reverse_relationship_id"
            ).iter_rows():
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

    def relations(self, path: Path) -> Iterator[Block]:
        """Yield the valid relations, each in one direction, and what replaces invalid concepts."""
        columns = "concept_id_1 concept_id_2 relationship_id invalid_reason"
        successors = list(_SUCCESSORS)
        for rows in self._rows(path, "CONCEPT_RELATIONSHIP", columns, "concept_id_1 concept_id_2"):
            rows.filter_unless(rows.column("invalid_reason") == "", "relation not valid any more")
            reverse = rows.column("relationship_id").is_in(list(self._reverses))
            rows.filter_unless(~reverse, "reverse of another relation")
            itself = rows.column("concept_id_1") == rows.column("concept_id_2")
            rows.filter_unless(~itself, "relation of a concept to itself")
            if not self._config.keep_suppressed and len(self._left_out):
                retired = _numbers(rows, "concept_id_1").is_in(self._left_out.implode())
                named = retired & rows.column("relationship_id").is_in(successors)
                yield Block(
                    IdRecord,
                    rows.frame.filter(named).select(
                        concept=_id("concept_id_2"),
                        id=_id("concept_id_1"),
                        kind=pl.col("relationship_id").replace_strict(
                            {name: str(kind) for name, kind in _SUCCESSORS.items()},
                            return_dtype=pl.String,
                        ),
                        line="line",
                    ),
                )
                rows.frame = rows.frame.filter(~named)
            self._drop_left_out(rows, "concept_id_1")
            self._drop_left_out(rows, "concept_id_2")
            yield Block(
                RelationRecord,
                rows.frame.select(
                    head=_id("concept_id_1"),
                    relation=pl.col("relationship_id").replace({_IS_A: IS_A}),
                    tail=_id("concept_id_2"),
                    source=pl.lit(""),
                    line="line",
                ),
            )

    def parents(self, path: Path) -> Iterator[Block]:
        """Yield the direct ancestors as parents."""
        columns = "ancestor_concept_id descendant_concept_id min_levels_of_separation"
        for rows in self._rows(
            path, "CONCEPT_ANCESTOR", columns, "ancestor_concept_id descendant_concept_id"
        ):
            direct = rows.column("min_levels_of_separation") == "1"
            rows.filter_unless(direct, "ancestor that is no parent")
            self._drop_left_out(rows, "ancestor_concept_id")
            self._drop_left_out(rows, "descendant_concept_id")
            yield Block(
                RelationRecord,
                rows.frame.select(
                    head=_id("descendant_concept_id"),
                    relation=pl.lit(IS_A),
                    tail=_id("ancestor_concept_id"),
                    source=pl.lit(""),
                    line="line",
                ),
            )


FORMAT = Format(recognise, read)
