"""UMLS RRF reader: MRCONSO, MRSTY, MRDEF, MRREL and MRCUI, as a META folder or single files.

A row of MRREL is the relation of its *second* concept to its first, so the triple is
(CUI2, RELA or REL, CUI1). The file has every relation twice, once in each direction; the hierarchy
(``isa``/``inverse_isa``, and PAR/CHD without RELA) becomes ``is-a`` from both, so that the two rows
are one triple in the store.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
import polars as pl

from biograft.arrays import Uint64s
from biograft.kb.names import language_code
from biograft.kb.records import (
    IS_A,
    DefinitionRecord,
    IdKind,
    IdRecord,
    NameKind,
    NameRecord,
    RelationRecord,
    TypeRecord,
)
from biograft.kb.sources.delimited import Release, RowChecker, read_rows, rrf, to_block
from biograft.kb.sources.format import Block, Format, Item, SourceConfig, ids_lost
from biograft.kb.sources.log import ReadLog

Hashes: TypeAlias = Uint64s

_TRANSLATIONS = (
    "SPA POR FRE GER ITA RUS CZE DUT FIN HUN JPN KOR NOR POL SWE SCR LAV GRE CHI".split()
)
_SUCCESSORS = {
    "SY": IdKind.REPLACED,
    "RB": IdKind.CONSIDER,
    "RN": IdKind.CONSIDER,
    "RO": IdKind.CONSIDER,
}
"""Relations of a retired concept to one that takes its place; ``DEL`` has none."""
_CUI, _SUPPRESS = r"C\d{7}", "[OEYN]"
_RELEASE = Release(
    layouts={
        "MRCONSO": rrf(
            "CUI LAT TS LUI STT SUI ISPREF AUI SAUI SCUI SDUI SAB TTY CODE STR SRL SUPPRESS CVF",
            wanted="CUI LAT TS STT ISPREF SAB TTY CODE STR SUPPRESS",
            required="CUI STR",
            CUI=_CUI,
            LAT="[A-Z]{3}",
            SUPPRESS=_SUPPRESS,
        ),
        "MRSTY": rrf(
            "CUI TUI STN STY ATUI CVF",
            wanted="CUI TUI STN STY",
            required="CUI TUI",
            CUI=_CUI,
            TUI=r"T\d{3}",
        ),
        "MRDEF": rrf(
            "CUI AUI ATUI SATUI SAB DEF SUPPRESS CVF",
            wanted="CUI SAB DEF SUPPRESS",
            required="CUI DEF",
            CUI=_CUI,
            AUI="A.*",
            SUPPRESS=_SUPPRESS,
        ),
        "MRREL": rrf(
            "CUI1 AUI1 STYPE1 REL CUI2 AUI2 STYPE2 RELA RUI SRUI SAB SL RG DIR SUPPRESS CVF",
            wanted="CUI1 REL CUI2 RELA SAB SUPPRESS",
            required="CUI1 CUI2 REL",
            CUI1=_CUI,
            CUI2=_CUI,
            REL="[A-Z]{2,3}",
        ),
        "MRCUI": rrf(
            "CUI1 VER REL RELA MAPREASON CUI2 MAPIN",
            wanted="CUI1 REL CUI2",
            required="CUI1 REL",
            CUI1=_CUI,
            VER=r"(?:19|20)\d\d[A-Z]{2}",
        ),
    },
    main="MRCONSO",
    suffix=".RRF",
    places=("*", "META/*"),
    remedy="name the META folder",
)


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield the blocks of all files."""
    steps = {
        "MRCONSO": _names,
        "MRSTY": _types,
        "MRDEF": _definitions,
        "MRREL": _relations,
        "MRCUI": _retired,
    }
    files = _RELEASE.files(config.path, log)
    if config.keep_concepts_of and "MRCONSO" in files:
        steps["MRCONSO"] = partial(_names, chosen=_concepts_of(files["MRCONSO"], config))
    for kind, path in files.items():
        for rows in read_rows(path, log, _RELEASE.layouts[kind], config.encoding):
            yield from steps[kind](rows, config, log)


def _names(
    rows: RowChecker, config: SourceConfig, log: ReadLog, chosen: Hashes | None = None
) -> Iterator[Block]:
    concepts = rows.column("CUI")
    filter_suppressed(rows, config)
    if chosen is not None:
        rows.filter_unless(_among(rows.column("CUI"), chosen), "concept of other vocabularies")
    filter_atoms(rows, config)
    frame = rows.frame
    if frame.height < len(concepts):
        log.leave_out(ids_lost(concepts, frame["CUI"]))
    preferred = (pl.col("TS") == "P") & (pl.col("STT") == "PF") & (pl.col("ISPREF") == "Y")
    yield name_block(frame, pl.col("CUI"), preferred)
    if config.keep_codes:
        yield code_block(frame, pl.col("CUI"))


def filter_suppressed(rows: RowChecker, config: SourceConfig) -> None:
    """Drop suppressed rows, unless they are to be kept; RXNREL leaves the column empty.

    Args:
        rows: Rows with SUPPRESS.
        config: The source.
    """
    if not config.keep_suppressed:
        rows.filter_unless(rows.column("SUPPRESS").is_in(["N", ""]), "suppressed")


def filter_atoms(rows: RowChecker, config: SourceConfig) -> None:
    """Drop atoms of vocabularies and term types that are not wanted.

    Args:
        rows: Rows with SAB and TTY.
        config: The source.
    """
    rows.filter_among("SAB", config.vocabularies, "vocabulary")
    rows.filter_among("TTY", config.term_types, "term type")


def name_block(frame: pl.DataFrame, concept: pl.Expr, preferred: pl.Expr) -> Block:
    """Return the names of atoms.

    Args:
        frame: Rows with LAT, SAB, STR and their line.
        concept: The concept of each.
        preferred: Whether each is the preferred name of its concept.
    """
    return to_block(
        NameRecord,
        frame,
        concept=concept,
        text="STR",
        language=pl.col("LAT").replace({tag: language_code(tag) for tag in frame["LAT"].unique()}),
        kind=pl.when(preferred)
        .then(pl.lit(NameKind.PREFERRED))
        .otherwise(pl.lit(NameKind.SYNONYM)),
        source="SAB",
    )


def code_block(frame: pl.DataFrame, concept: pl.Expr) -> Block:
    """Return the codes of atoms as cross-references such as MSH:D009203, each once.

    Args:
        frame: Rows with SAB, CODE and their line.
        concept: The concept of each.
    """
    coded = frame.filter(~pl.col("CODE").is_in(["", "NOCODE"]))
    # the codes of some vocabularies already have their prefix (HGNC:5, GO:0008150)
    own = pl.col("CODE").str.starts_with(pl.col("SAB") + ":")
    code = pl.when(own).then("CODE").otherwise(pl.format("{}:{}", "SAB", "CODE"))
    block = to_block(IdRecord, coded, concept=concept, id=code, kind=pl.lit(IdKind.XREF))
    return Block(IdRecord, block.frame.unique(["concept", "id"], keep="first", maintain_order=True))


def _concepts_of(path: Path, config: SourceConfig) -> Hashes:
    """Return the hashes of the concepts with an atom of the vocabularies to keep.

    The atom must be one that the filters on suppressed atoms and languages keep. This is a first
    pass over the file. A set of hashes takes 8 bytes a concept, 32 MB for the whole UMLS.
    """
    chosen = [np.zeros(0, np.uint64)]
    wanted = ("CUI", "LAT", "SAB", "SUPPRESS")
    layout = replace(_RELEASE.layouts["MRCONSO"], wanted=wanted, required=())
    for rows in read_rows(path, ReadLog(path), layout, config.encoding):
        filter_suppressed(rows, config)
        rows.filter_among("SAB", config.keep_concepts_of, "vocabulary")
        frame = rows.frame
        if config.languages:
            tags = [t for t in frame["LAT"].unique() if language_code(t) in config.languages]
            frame = frame.filter(pl.col("LAT").is_in(tags))
        chosen.append(frame["CUI"].unique().hash().to_numpy())
    return np.unique(np.concatenate(chosen))


def _among(concepts: pl.Series, chosen: Hashes) -> pl.Series:
    """Return which concepts are among the chosen ones, whose hashes are ascending."""
    hashes = concepts.hash().to_numpy()
    ends = [np.searchsorted(chosen, hashes, side) for side in ("left", "right")]
    return pl.Series(ends[0] < ends[1])


def _types(rows: RowChecker, config: SourceConfig, log: ReadLog) -> Iterator[Block]:
    yield type_block(rows.frame, pl.col("CUI"))


def type_block(frame: pl.DataFrame, concept: pl.Expr) -> Block:
    """Return semantic types.

    Args:
        frame: Rows with TUI, STN, STY and their line.
        concept: The concept of each.
    """
    return to_block(TypeRecord, frame, concept=concept, type="TUI", label="STY", tree="STN")


def _definitions(rows: RowChecker, config: SourceConfig, log: ReadLog) -> Iterator[Block]:
    filter_suppressed(rows, config)
    rows.filter_among("SAB", config.vocabularies, "vocabulary")
    # MRDEF has no language; translated vocabularies end in their language's code
    language = pl.coalesce(
        pl.col("SAB")
        .str.extract(r"^(?:MSH|MDR|MEDLINEPLUS_|SCT)([A-Z]{3})$")
        .replace_strict({tag: language_code(tag) for tag in _TRANSLATIONS}, default=None),
        pl.lit(config.language or "en"),
    )
    yield to_block(
        DefinitionRecord, rows.frame, concept="CUI", text="DEF", language=language, source="SAB"
    )


def _relations(rows: RowChecker, config: SourceConfig, log: ReadLog) -> Iterator[Block]:
    filter_suppressed(rows, config)
    rows.filter_among("SAB", config.vocabularies, "vocabulary")
    # these hold between atoms (two names of one concept), not between concepts
    between = rows.column("CUI1") != rows.column("CUI2")
    rows.filter_unless(between, "relation of a concept to itself")
    yield relation_block(rows.frame, pl.col("CUI1"), pl.col("CUI2"))


def relation_block(frame: pl.DataFrame, first: pl.Expr, second: pl.Expr) -> Block:
    """Return the relations of rows: of the second concept to the first, upwards in the hierarchy.

    Args:
        frame: Rows with REL, RELA, SAB and their line.
        first: The first concept.
        second: The second concept.
    """
    named = pl.when(pl.col("RELA") == "").then("REL").otherwise("RELA")
    up, down = named.is_in(["isa", "CHD"]), named.is_in(["inverse_isa", "PAR"])
    return to_block(
        RelationRecord,
        frame,
        head=pl.when(down).then(first).otherwise(second),
        relation=pl.when(up | down).then(pl.lit(IS_A)).otherwise(named),
        tail=pl.when(down).then(second).otherwise(first),
        source="SAB",
    )


def _retired(rows: RowChecker, config: SourceConfig, log: ReadLog) -> Iterator[Block]:
    named = rows.column("REL").is_in(list(_SUCCESSORS)) & (rows.column("CUI2") != "")
    rows.filter_unless(named, "retired concept without a successor")
    kind = pl.col("REL").replace(_SUCCESSORS)
    yield to_block(IdRecord, rows.frame, concept="CUI2", id="CUI1", kind=kind)


FORMAT = Format(_RELEASE.recognise, read)
