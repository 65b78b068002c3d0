"""UMLS RRF reader: MRCONSO, MRSTY, MRDEF, MRREL and MRCUI, as a META folder or single files.

A row of MRREL is the relation of its *second* concept to its first, so the triple is
(CUI2, RELA or REL, CUI1). The file has every relation twice, once in each direction; the hierarchy
(``isa``/``inverse_isa``, and PAR/CHD without RELA) becomes ``is-a`` from both, so that the two rows
are one triple in the store.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from biograft.errors import UnrecognisedError
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
from biograft.kb.sources.delimited import DelimitedLayout, RowChecker, ids_lost, read_rows
from biograft.kb.sources.files import is_empty, read_head
from biograft.kb.sources.format import Block, Format, Item, Probe, SourceConfig, look_at
from biograft.kb.sources.log import ReadLog

FileReader: TypeAlias = Callable[[Path, SourceConfig, ReadLog], Iterator[Block]]
Hashes: TypeAlias = npt.NDArray[np.uint64]


_TRANSLATIONS = (
    "SPA POR FRE GER ITA RUS CZE DUT FIN HUN JPN KOR NOR POL SWE SCR LAV GRE CHI".split()
)


def rrf_layout(columns: str) -> DelimitedLayout:
    """Return the layout of a file of UMLS or RxNorm.

    Args:
        columns: Names of the columns, separated by blanks.
    """
    return DelimitedLayout(columns=tuple(columns.split()), separator="|", trailing=True)


LAYOUTS = {
    "MRCONSO": rrf_layout(
        "CUI LAT TS LUI STT SUI ISPREF AUI SAUI SCUI SDUI SAB TTY CODE STR SRL SUPPRESS CVF"
    ),
    "MRSTY": rrf_layout("CUI TUI STN STY ATUI CVF"),
    "MRDEF": rrf_layout("CUI AUI ATUI SATUI SAB DEF SUPPRESS CVF"),
    "MRREL": rrf_layout(
        "CUI1 AUI1 STYPE1 REL CUI2 AUI2 STYPE2 RELA RUI SRUI SAB SL RG DIR SUPPRESS CVF"
    ),
    "MRCUI": rrf_layout("CUI1 VER REL RELA MAPREASON CUI2 MAPIN"),
}
"""The columns of each file; files are read in this order."""

_CUI = re.compile(r"C\d{7}")
_SUPPRESS = frozenset("OEYN")
_ROW_TESTS: dict[str, Callable[[list[str]], bool]] = {
    "MRCONSO": lambda f: bool(re.fullmatch(r"[A-Z]{3}", f[1]) and f[16] in _SUPPRESS),
    "MRSTY": lambda f: bool(re.fullmatch(r"T\d{3}", f[1])),
    "MRDEF": lambda f: f[1].startswith("A") and f[6] in _SUPPRESS,
    "MRREL": lambda f: bool(_CUI.fullmatch(f[4]) and re.fullmatch(r"[A-Z]{2,3}", f[3])),
    "MRCUI": lambda f: bool(re.fullmatch(r"(?:19|20)\d\d[A-Z]{2}", f[1])),
}


def recognise(probe: Probe) -> bool:
    """A folder that holds MRCONSO, or lines in the layout of one of the files."""
    if probe.members:
        return bool(_find(probe.path, "MRCONSO"))
    return _kind(probe.lines(5)) is not None


def _kind(lines: list[str]) -> str | None:
    """Return the kind of file that lines come from; None if it is none of them."""
    for kind, layout in LAYOUTS.items():
        rows = [line.split("|") for line in lines]
        if rows and all(
            len(row) == len(layout.columns) + 1 and _CUI.fullmatch(row[0]) and _ROW_TESTS[kind](row)
            for row in rows
        ):
            return kind
    return None


def _find(folder: Path, kind: str) -> Path | None:
    """Find one of the files in a folder or in its META folder."""
    folders = [folder, folder / "META"]
    names = [f"{kind}.RRF", f"{kind}.RRF.gz"]
    return next((p / n for p in folders for n in names if (p / n).is_file()), None)


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield the blocks of all files."""
    steps: dict[str, FileReader] = {
        "MRCONSO": _read_names,
        "MRSTY": _read_types,
        "MRDEF": _read_definitions,
        "MRREL": _read_relations,
        "MRCUI": _read_retired,
    }
    for kind, path in _files(config.path).items():
        if kind != "MRCONSO" and config.path.is_dir() and is_empty(path):
            log.note(f"{kind}.RRF is empty")
        else:
            yield from steps[kind](path, config, log)


def _files(path: Path) -> dict[str, Path]:
    if path.is_dir():
        paths = {kind: _find(path, kind) for kind in LAYOUTS}
        files = {kind: file for kind, file in paths.items() if file}
        if "MRCONSO" not in files:
            raise UnrecognisedError(
                "holds no MRCONSO.RRF", path=path, remedy="name the META folder"
            )
        read_head(files["MRCONSO"])  # names are required, so it must not be empty
        return files
    lines = look_at(path).lines(5)
    kind = _kind(lines) or next((k for k in LAYOUTS if path.name.upper().startswith(k)), None)
    if kind is None:
        raise UnrecognisedError(
            "is none of MRCONSO, MRSTY, MRDEF, MRREL, MRCUI",
            path=path,
            line=1,
            text=(lines or [""])[0],
        )
    return {kind: path}


def _read_names(path: Path, config: SourceConfig, log: ReadLog) -> Iterator[Block]:
    columns = "CUI LAT TS STT ISPREF SAB TTY STR SUPPRESS" + " CODE" * config.keep_codes
    preferred = (pl.col("TS") == "P") & (pl.col("STT") == "PF") & (pl.col("ISPREF") == "Y")
    chosen = _concepts_of(path, config) if config.keep_concepts_of else None
    for rows in _rows(path, "MRCONSO", columns, ("CUI", "STR"), config, log):
        whole = rows.frame
        _filter_suppressed(rows, config)
        if chosen is not None:
            rows.filter_unless(_among(rows.column("CUI"), chosen), "concept of other vocabularies")
        rows.filter_among("SAB", config.vocabularies, "vocabulary")
        rows.filter_among("TTY", config.term_types, "term type")
        frame = rows.frame
        if frame.height < whole.height:
            log.leave_out(ids_lost(whole["CUI"], frame["CUI"]))
        codes = {tag: language_code(tag) for tag in frame["LAT"].unique()}
        yield Block(
            NameRecord,
            frame.select(
                concept="CUI",
                text="STR",
                language=pl.col("LAT").replace(codes),
                kind=pl.when(preferred)
                .then(pl.lit(str(NameKind.PREFERRED)))
                .otherwise(pl.lit(str(NameKind.SYNONYM))),
                source="SAB",
                line="line",
            ),
        )
        if config.keep_codes:
            # codes of source vocabularies become cross-references such as MSH:D009203
            coded = frame.filter(~pl.col("CODE").is_in(["", "NOCODE"]))
            coded = coded.unique(["CUI", "SAB", "CODE"], keep="first", maintain_order=True)
            # the codes of some vocabularies already have their prefix (HGNC:5, GO:0008150)
            own = pl.col("CODE").str.starts_with(pl.col("SAB") + ":")
            code = pl.when(own).then("CODE").otherwise(pl.format("{}:{}", "SAB", "CODE"))
            kind = pl.lit(str(IdKind.XREF))
            yield Block(IdRecord, coded.select(concept="CUI", id=code, kind=kind, line="line"))


def _concepts_of(path: Path, config: SourceConfig) -> Hashes:
    """Return the hashes of the concepts with an atom of the vocabularies to keep.

    The atom must be one that the filters on suppressed atoms and languages keep. This is a first
    pass over the file. A set of hashes takes 8 bytes a concept, 32 MB for the whole UMLS.
    """
    chosen = [np.zeros(0, np.uint64)]
    for rows in _rows(path, "MRCONSO", "CUI LAT SAB SUPPRESS", (), config, ReadLog(path)):
        _filter_suppressed(rows, config)
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


def _read_types(path: Path, config: SourceConfig, log: ReadLog) -> Iterator[Block]:
    for rows in _rows(path, "MRSTY", "CUI TUI STN STY", ("CUI", "TUI"), config, log):
        yield Block(
            TypeRecord,
            rows.frame.select(concept="CUI", type="TUI", label="STY", tree="STN", line="line"),
        )


def _read_definitions(path: Path, config: SourceConfig, log: ReadLog) -> Iterator[Block]:
    for rows in _rows(path, "MRDEF", "CUI SAB DEF SUPPRESS", ("CUI", "DEF"), config, log):
        _filter_suppressed(rows, config)
        rows.filter_among("SAB", config.vocabularies, "vocabulary")
        # MRDEF has no language; translated vocabularies end in their language's code
        language = pl.coalesce(
            pl.col("SAB")
            .str.extract(r"^(?:MSH|MDR|MEDLINEPLUS_|SCT)([A-Z]{3})$")
            .replace_strict({tag: language_code(tag) for tag in _TRANSLATIONS}, default=None),
            pl.lit(config.language or "en"),
        )
        yield Block(
            DefinitionRecord,
            rows.frame.select(
                concept="CUI", text="DEF", language=language, source="SAB", line="line"
            ),
        )


def _read_relations(path: Path, config: SourceConfig, log: ReadLog) -> Iterator[Block]:
    columns = "CUI1 REL CUI2 RELA SAB SUPPRESS"
    for rows in _rows(path, "MRREL", columns, ("CUI1", "CUI2", "REL"), config, log):
        _filter_suppressed(rows, config)
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
    return Block(
        RelationRecord,
        frame.select(
            head=pl.when(down).then(first).otherwise(second),
            relation=pl.when(up | down).then(pl.lit(IS_A)).otherwise(named),
            tail=pl.when(down).then(second).otherwise(first),
            source="SAB",
            line="line",
        ),
    )


_SUCCESSORS = {
    "SY": str(IdKind.REPLACED),
    **dict.fromkeys(("RB", "RN", "RO"), str(IdKind.CONSIDER)),
}
"""Relations of a retired concept to one that takes its place; ``DEL`` has none."""


def _read_retired(path: Path, config: SourceConfig, log: ReadLog) -> Iterator[Block]:
    for rows in _rows(path, "MRCUI", "CUI1 REL CUI2", ("CUI1", "REL"), config, log):
        named = rows.column("REL").is_in(list(_SUCCESSORS)) & (rows.column("CUI2") != "")
        rows.filter_unless(named, "retired concept without a successor")
        kind = pl.col("REL").replace(_SUCCESSORS)
        yield Block(IdRecord, rows.frame.select(concept="CUI2", id="CUI1", kind=kind, line="line"))


def _rows(
    path: Path,
    kind: str,
    columns: str,
    required: Sequence[str],
    config: SourceConfig,
    log: ReadLog,
) -> Iterator[RowChecker]:
    """Read some columns of a file; rows with an empty required field are rejected."""
    wanted = columns.split()
    for frame in read_rows(path, log, LAYOUTS[kind], wanted, config.encoding):
        rows = RowChecker(frame, path, log, "|")
        for column in required:
            rows.reject_unless(rows.column(column) != "", f"{column} is empty")
        yield rows


def _filter_suppressed(rows: RowChecker, config: SourceConfig) -> None:
    if not config.keep_suppressed:
        rows.filter_unless(rows.column("SUPPRESS") == "N", "suppressed")


FORMAT = Format(recognise, read)
