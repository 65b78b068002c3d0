"""RxNorm reader: RXNCONSO, RXNSTY, RXNREL and RXNCUI, as an rrf folder or single files.

A concept has the id ``RXNORM:161``. Term types of RxNorm (``IN`` ingredient, ``SCD`` clinical drug,
``DF`` dose form, ...) are types of their concepts, beside the semantic types of UMLS. As in UMLS,
a row of RXNREL is the relation of its *second* concept to its first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl

from biograft.errors import UnrecognisedError
from biograft.kb.names import language_code
from biograft.kb.records import (
    IdKind,
    IdRecord,
    NameKind,
    NameRecord,
    TypeRecord,
)
from biograft.kb.sources.delimited import RowChecker, ids_lost, read_rows
from biograft.kb.sources.format import Block, Format, Item, Probe, SourceConfig, look_at
from biograft.kb.sources.log import ReadLog
from biograft.kb.sources.umls_rrf import relation_block, rrf_layout

LAYOUTS = {
    "RXNCONSO": rrf_layout(
        "RXCUI LAT TS LUI STT SUI ISPREF RXAUI SAUI SCUI SDUI SAB TTY CODE STR SRL SUPPRESS CVF"
    ),
    "RXNSTY": rrf_layout("RXCUI TUI STN STY ATUI CVF"),
    "RXNREL": rrf_layout(
        "RXCUI1 RXAUI1 STYPE1 REL RXCUI2 RXAUI2 STYPE2 RELA RUI SRUI SAB SL DIR RG SUPPRESS CVF"
    ),
    "RXNCUI": rrf_layout("CUI1 VER_START VER_END CARDINALITY CUI2"),
}
"""The columns of each file; files are read in this order."""

TERM_TYPES = {
    "IN": "Ingredient",
    "PIN": "Precise Ingredient",
    "MIN": "Multiple Ingredients",
    "BN": "Brand Name",
    "SCDC": "Semantic Clinical Drug Component",
    "SCDF": "Semantic Clinical Drug Form",
    "SCDFP": "Semantic Clinical Drug Form Precise",
    "SCDG": "Semantic Clinical Drug Group",
    "SCDGP": "Semantic Clinical Drug Form Group Precise",
    "SCD": "Semantic Clinical Drug",
    "GPCK": "Generic Pack",
    "SBDC": "Semantic Branded Drug Component",
    "SBDF": "Semantic Branded Drug Form",
    "SBDFP": "Semantic Branded Drug Form Precise",
    "SBDG": "Semantic Branded Drug Group",
    "SBD": "Semantic Branded Drug",
    "BPCK": "Brand Name Pack",
    "DF": "Dose Form",
    "DFG": "Dose Form Group",
}
"""Term types of RxNorm that make a concept what it is, and whose names are its preferred ones."""

_RXCUI = re.compile(r"\d{1,8}")
_ROW_TESTS: dict[str, Callable[[list[str]], bool]] = {
    "RXNCONSO": lambda f: bool(re.fullmatch(r"[A-Z]{3}", f[1])) and f[16] in "NOYE",
    "RXNSTY": lambda f: bool(re.fullmatch(r"T\d{3}", f[1])),
    "RXNREL": lambda f: f[2] in ("CUI", "AUI"),
    "RXNCUI": lambda f: f[3].isdecimal() and bool(re.fullmatch(r"\d*", f[4])),
}


def recognise(probe: Probe) -> bool:
    """A folder that holds RXNCONSO, or lines in the layout of one of the files."""
    if probe.members:
        return bool(_find(probe.path, "RXNCONSO"))
    return bool(_kind(probe.lines(5)))


def _kind(lines: list[str]) -> str:
    rows = [line.split("|") for line in lines]
    for kind, layout in LAYOUTS.items():
        n = len(layout.columns) + 1
        if rows and all(
            len(row) == n
            and (_RXCUI.fullmatch(row[0]) or (kind == "RXNREL" and not row[0]))
            and _ROW_TESTS[kind](row)
            for row in rows
        ):
            return kind
    return ""


def _find(folder: Path, kind: str) -> Path | None:
    folders = [folder, folder / "rrf"]
    names = [f"{kind}.RRF", f"{kind}.RRF.gz"]
    return next((p / n for p in folders for n in names if (p / n).is_file()), None)


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield the blocks of all files."""
    steps = {
        "RXNCONSO": _read_names,
        "RXNSTY": _read_types,
        "RXNREL": _read_relations,
        "RXNCUI": _read_retired,
    }
    for kind, path in _files(config.path).items():
        yield from steps[kind](path, config, log)


def _files(path: Path) -> dict[str, Path]:
    if path.is_dir():
        if found := {kind: file for kind in LAYOUTS if (file := _find(path, kind))}:
            return found
        raise UnrecognisedError("holds no RXNCONSO.RRF", path=path, remedy="name the rrf folder")
    lines = look_at(path).lines(5)
    named = next((kind for kind in LAYOUTS if path.name.upper().startswith(kind)), "")
    if kind := _kind(lines) or named:
        return {kind: path}
    raise UnrecognisedError(
        f"is none of {', '.join(LAYOUTS)}", path=path, line=1, text=(lines or [""])[0]
    )


def _rows(
    path: Path, kind: str, columns: str, config: SourceConfig, log: ReadLog
) -> Iterator[RowChecker]:
    wanted = columns.split()
    for frame in read_rows(path, log, LAYOUTS[kind], wanted, config.encoding):
        rows = RowChecker(frame, path, log, "|")
        if "SUPPRESS" in wanted and not config.keep_suppressed:
            # RXNREL leaves the column empty
            rows.filter_unless(rows.column("SUPPRESS").is_in(["N", ""]), "suppressed")
        yield rows


def _id(column: str) -> pl.Expr:
    return pl.concat_str(pl.lit("RXNORM:"), column)


def _read_names(path: Path, config: SourceConfig, log: ReadLog) -> Iterator[Block]:
    columns = "RXCUI LAT SAB TTY CODE STR SUPPRESS"
    for frame in read_rows(path, log, LAYOUTS["RXNCONSO"], columns.split(), config.encoding):
        rows = RowChecker(frame, path, log, "|")
        for column in ("RXCUI", "STR"):
            rows.reject_unless(rows.column(column) != "", f"{column} is empty")
        if not config.keep_suppressed:
            rows.filter_unless(rows.column("SUPPRESS") == "N", "suppressed")
        rows.filter_among("SAB", config.vocabularies, "vocabulary")
        rows.filter_among("TTY", config.term_types, "term type")
        kept = rows.frame
        log.leave_out("RXNORM:" + ids_lost(frame["RXCUI"], kept["RXCUI"]))
        own = pl.col("SAB") == "RXNORM"
        main = own & pl.col("TTY").is_in(list(TERM_TYPES))
        codes = {tag: language_code(tag) for tag in kept["LAT"].unique()}
        yield Block(
            NameRecord,
            kept.select(
                concept=_id("RXCUI"),
                text="STR",
                language=pl.col("LAT").replace(codes),
                kind=pl.when(main)
                .then(pl.lit(str(NameKind.PREFERRED)))
                .otherwise(pl.lit(str(NameKind.SYNONYM))),
                source="SAB",
                line="line",
            ),
        )
        yield Block(
            TypeRecord,
            kept.filter(main).select(
                concept=_id("RXCUI"),
                type="TTY",
                label=pl.col("TTY").replace(TERM_TYPES),
                tree=pl.lit(""),
                line="line",
            ),
        )
        if config.keep_codes:
            coded = kept.filter(~own & ~pl.col("CODE").is_in(["", "NOCODE"]))
            coded = coded.unique(["RXCUI", "SAB", "CODE"], keep="first", maintain_order=True)
            yield Block(
                IdRecord,
                coded.select(
                    concept=_id("RXCUI"),
                    id=pl.concat_str("SAB", pl.lit(":"), "CODE"),
                    kind=pl.lit(str(IdKind.XREF)),
                    line="line",
                ),
            )


def _read_types(path: Path, config: SourceConfig, log: ReadLog) -> Iterator[Block]:
    for rows in _rows(path, "RXNSTY", "RXCUI TUI STN STY", config, log):
        yield Block(
            TypeRecord,
            rows.frame.select(
                concept=_id("RXCUI"), type="TUI", label="STY", tree="STN", line="line"
            ),
        )


def _read_relations(path: Path, config: SourceConfig, log: ReadLog) -> Iterator[Block]:
    for rows in _rows(path, "RXNREL", "RXCUI1 REL RXCUI2 RELA SAB SUPPRESS", config, log):
        between = (rows.column("RXCUI1") != "") & (rows.column("RXCUI2") != "")
        rows.filter_unless(between, "relation of names, not of concepts")
        rows.filter_among("SAB", config.vocabularies, "vocabulary")
        yield relation_block(rows.frame, _id("RXCUI1"), _id("RXCUI2"))


def _read_retired(path: Path, config: SourceConfig, log: ReadLog) -> Iterator[Block]:
    """Yield the concepts that retired ones were merged into, or split into."""
    for rows in _rows(path, "RXNCUI", "CUI1 CARDINALITY CUI2", config, log):
        one, other = rows.column("CUI1"), rows.column("CUI2")
        rows.filter_unless((other != "") & (one != other), "retired without a successor")
        kind = (
            pl.when(pl.col("CARDINALITY") == "1")
            .then(pl.lit(str(IdKind.REPLACED)))
            .otherwise(pl.lit(str(IdKind.CONSIDER)))
        )
        yield Block(
            IdRecord,
            rows.frame.select(concept=_id("CUI2"), id=_id("CUI1"), kind=kind, line="line"),
        )


FORMAT = Format(recognise, read)
