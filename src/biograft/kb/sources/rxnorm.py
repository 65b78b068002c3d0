"""RxNorm reader: RXNCONSO, RXNSTY, RXNREL and RXNCUI, as an rrf folder or single files.

A concept has the id ``RXNORM:161``. Term types of RxNorm (``IN`` ingredient, ``SCD`` clinical drug,
``DF`` dose form, ...) are types of their concepts, beside the semantic types of UMLS. As in UMLS,
a row of RXNREL is the relation of its *second* concept to its first.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from biograft.kb.records import IdKind, IdRecord, TypeRecord
from biograft.kb.sources.delimited import Release, RowChecker, read_rows, rrf, to_block
from biograft.kb.sources.format import Block, Format, Item, SourceConfig, ids_lost
from biograft.kb.sources.log import ReadLog
from biograft.kb.sources.umls_rrf import (
    code_block,
    filter_atoms,
    filter_suppressed,
    name_block,
    relation_block,
    type_block,
)

TERM_TYPES = dict(
    line.split(maxsplit=1)
    for line in """\
IN Ingredient
PIN Precise Ingredient
MIN Multiple Ingredients
BN Brand Name
SCDC Semantic Clinical Drug Component
SCDF Semantic Clinical Drug Form
SCDFP Semantic Clinical Drug Form Precise
SCDG Semantic Clinical Drug Group
SCDGP Semantic Clinical Drug Form Group Precise
SCD Semantic Clinical Drug
GPCK Generic Pack
SBDC Semantic Branded Drug Component
SBDF Semantic Branded Drug Form
SBDFP Semantic Branded Drug Form Precise
SBDG Semantic Branded Drug Group
SBD Semantic Branded Drug
BPCK Brand Name Pack
DF Dose Form
DFG Dose Form Group""".splitlines()
)
"""Term types of RxNorm that make a concept what it is, and whose names are its preferred ones."""

_RXCUI = r"\d{1,8}"
_RELEASE = Release(
    layouts={
        "RXNCONSO": rrf(
            "RXCUI LAT TS LUI STT SUI ISPREF RXAUI SAUI SCUI SDUI SAB TTY CODE STR SRL SUPPRESS "
            "CVF",
            wanted="RXCUI LAT SAB TTY CODE STR SUPPRESS",
            required="RXCUI STR",
            RXCUI=_RXCUI,
            LAT="[A-Z]{3}",
            SUPPRESS="[NOYE]?",
        ),
        "RXNSTY": rrf(
            "RXCUI TUI STN STY ATUI CVF",
            wanted="RXCUI TUI STN STY",
            RXCUI=_RXCUI,
            TUI=r"T\d{3}",
        ),
        "RXNREL": rrf(
            "RXCUI1 RXAUI1 STYPE1 REL RXCUI2 RXAUI2 STYPE2 RELA RUI SRUI SAB SL DIR RG SUPPRESS "
            "CVF",
            wanted="RXCUI1 REL RXCUI2 RELA SAB SUPPRESS",
            RXCUI1=r"\d{0,8}",
            STYPE1="[CA]UI",
        ),
        "RXNCUI": rrf(
            "CUI1 VER_START VER_END CARDINALITY CUI2",
            wanted="CUI1 CARDINALITY CUI2",
            CUI1=_RXCUI,
            CARDINALITY=r"\d+",
            CUI2=r"\d*",
        ),
    },
    main="RXNCONSO",
    suffix=".RRF",
    places=("*", "rrf/*"),
    remedy="name the rrf folder",
)


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield the blocks of all files."""
    steps = {"RXNCONSO": _names, "RXNSTY": _types, "RXNREL": _relations, "RXNCUI": _retired}
    for kind, path in _RELEASE.files(config.path, log).items():
        for rows in read_rows(path, log, _RELEASE.layouts[kind], config.encoding):
            yield from steps[kind](rows, config, log)


def _id(column: str) -> pl.Expr:
    return pl.concat_str(pl.lit("RXNORM:"), column)


def _names(rows: RowChecker, config: SourceConfig, log: ReadLog) -> Iterator[Block]:
    concepts = rows.column("RXCUI")
    filter_suppressed(rows, config)
    filter_atoms(rows, config)
    frame = rows.frame
    log.leave_out("RXNORM:" + ids_lost(concepts, frame["RXCUI"]))
    concept, own = _id("RXCUI"), pl.col("SAB") == "RXNORM"
    main = own & pl.col("TTY").is_in(list(TERM_TYPES))
    yield name_block(frame, concept, main)
    label = pl.col("TTY").replace(TERM_TYPES)
    yield to_block(TypeRecord, frame.filter(main), concept=concept, type="TTY", label=label)
    if config.keep_codes:
        yield code_block(frame.filter(~own), concept)


def _types(rows: RowChecker, config: SourceConfig, log: ReadLog) -> Iterator[Block]:
    yield type_block(rows.frame, _id("RXCUI"))


def _relations(rows: RowChecker, config: SourceConfig, log: ReadLog) -> Iterator[Block]:
    filter_suppressed(rows, config)
    between = (rows.column("RXCUI1") != "") & (rows.column("RXCUI2") != "")
    rows.filter_unless(between, "relation of names, not of concepts")
    rows.filter_among("SAB", config.vocabularies, "vocabulary")
    yield relation_block(rows.frame, _id("RXCUI1"), _id("RXCUI2"))


def _retired(rows: RowChecker, config: SourceConfig, log: ReadLog) -> Iterator[Block]:
    """Yield the concepts that retired ones were merged into, or split into."""
    one, other = rows.column("CUI1"), rows.column("CUI2")
    rows.filter_unless((other != "") & (one != other), "retired without a successor")
    kind = (
        pl.when(pl.col("CARDINALITY") == "1")
        .then(pl.lit(IdKind.REPLACED))
        .otherwise(pl.lit(IdKind.CONSIDER))
    )
    yield to_block(IdRecord, rows.frame, concept=_id("CUI2"), id=_id("CUI1"), kind=kind)


FORMAT = Format(_RELEASE.recognise, read)
