"""SNOMED CT RF2 reader: the snapshot files of a release.

They are concepts, descriptions, relations and the historical associations of inactive concepts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from biograft.errors import InputError
from biograft.kb.names import language_code
from biograft.kb.records import (
    IS_A,
    ConceptRecord,
    DefinitionRecord,
    IdKind,
    IdRecord,
    NameKind,
    NameRecord,
    RelationRecord,
    TypeRecord,
)
from biograft.kb.sources.delimited import DelimitedLayout, RowChecker, headed, read_rows, to_block
from biograft.kb.sources.format import Block, Format, Item, Probe, SourceConfig, look_at
from biograft.kb.sources.log import ReadLog


def _layout(columns: str, wanted: str) -> DelimitedLayout:
    return headed(f"id effectiveTime active moduleId {columns}", f"id active {wanted}")


CONCEPTS, DESCRIPTIONS, RELATIONSHIPS, LANGUAGE, CONCRETE, ASSOCIATIONS = (
    "concepts",
    "descriptions",
    "relationships",
    "language refset",
    "concrete values",
    "association refset",
)

LAYOUTS = {
    CONCEPTS: _layout("definitionStatusId", ""),
    # text definitions too: they are descriptions of another type
    DESCRIPTIONS: _layout(
        "conceptId languageCode typeId term caseSignificanceId",
        "conceptId languageCode typeId term",
    ),
    RELATIONSHIPS: _layout(
        "sourceId destinationId relationshipGroup typeId characteristicTypeId modifierId",
        "sourceId destinationId typeId",
    ),
    LANGUAGE: _layout(
        "refsetId referencedComponentId acceptabilityId",
        "refsetId referencedComponentId acceptabilityId",
    ),
    ASSOCIATIONS: _layout(
        "refsetId referencedComponentId targetComponentId",
        "refsetId referencedComponentId targetComponentId",
    ),
    CONCRETE: _layout(
        "sourceId value relationshipGroup typeId characteristicTypeId modifierId", ""
    ),
}
_IDS = (
    *("conceptId", "destinationId", "referencedComponentId", "sourceId"),
    *("targetComponentId", "typeId"),
)
"""Columns that hold an id of SNOMED CT."""
_SUBJECTS = {DESCRIPTIONS: ("conceptId",), RELATIONSHIPS: ("sourceId", "destinationId")}
"""Columns whose concepts must be active."""

_NAME = re.compile(r"x?(?:sct2|der2)_\w+(?:-[\w-]+)?.*\.txt(?:\.gz)?", re.IGNORECASE)
_OTHER_STATE = re.compile(r"(Full|Delta)(?:-[\w-]+?)?_", re.IGNORECASE)
_STATED = re.compile(r"StatedRelationship", re.IGNORECASE)
_NEEDED = re.compile(r"sct2_(?:Concept|Description|TextDefinition|Relationship)_", re.IGNORECASE)
_READ = re.compile(
    rf"{_NEEDED.pattern}|cRefset_(?:Language|Association)|ConcreteValues", re.IGNORECASE
)
"""The files to open, among dozens of other reference sets."""
_FOLDERS = frozenset({"Snapshot", "Terminology", "Full", "Delta"})


def _kind_of(probe: Probe) -> str:
    """Return the kind of a file by its header; empty if it is not RF2."""
    header = probe.lines(1)
    return next((kind for kind, layout in LAYOUTS.items() if layout.fits(header)), "")


def find_files(path: Path) -> dict[str, list[Path]]:
    """Find the snapshot files of a release, by kind."""
    if not path.is_dir():
        return {_kind(path): [_refuse_other_state(path)]}
    named = sorted(p for p in path.rglob("*") if p.is_file() and _NAME.fullmatch(p.name))
    snapshots = [p for p in named if not _OTHER_STATE.search(p.name)]
    if not snapshots:
        if named:
            _refuse_other_state(named[0])
        raise InputError("holds no files of RF2", path=path, remedy="name the release folder")
    files: dict[str, list[Path]] = {}
    for file in snapshots:
        if _READ.search(file.name) and not _STATED.search(file.name):
            files.setdefault(_kind(file), []).append(file)
    if not {CONCEPTS, DESCRIPTIONS, RELATIONSHIPS} & files.keys():
        raise InputError(
            "holds no sct2_Concept, sct2_Description or sct2_Relationship file",
            path=path,
            remedy="name the release folder or its Snapshot folder",
        )
    return files


def _kind(file: Path) -> str:
    """Return the kind of a file, whose header must be known."""
    probe = look_at(file)
    if kind := _kind_of(probe):
        return kind
    raise probe.unrecognised(
        "the header is none of RF2",
        "expected id, effectiveTime, active, moduleId, ... separated by tabs",
    )


def _refuse_other_state(file: Path) -> Path:
    if match := _OTHER_STATE.search(file.name):
        raise InputError(
            f"is a {match[1]} file, which holds more than the current state",
            path=file,
            remedy="name the Snapshot folder of the release",
        )
    return file


IS_A_TYPE = "116680003"
PREFERRED = "900000000000548007"
FULLY_SPECIFIED, SYNONYM, DEFINITION = (
    "900000000000003001",
    "900000000000013009",
    "900000000000550004",
)

SUCCESSORS = {
    "900000000000527005": IdKind.REPLACED,  # SAME AS
    "900000000000526001": IdKind.REPLACED,  # REPLACED BY
    "900000000000523009": IdKind.CONSIDER,  # POSSIBLY EQUIVALENT TO
    "1186921001": IdKind.CONSIDER,  # POSSIBLY REPLACED BY
    "1186924009": IdKind.CONSIDER,  # PARTIALLY EQUIVALENT TO
    "900000000000530003": IdKind.CONSIDER,  # ALTERNATIVE
}
"""Historical associations of inactive concepts, by reference set."""

_TAG = r"\s*\(([^()]+)\)$"


def recognise(probe: Probe) -> bool:
    """A folder with RF2 file names, or a file with an RF2 header."""
    if not probe.members:
        return bool(_kind_of(probe))
    if any(_NAME.fullmatch(name) for name in probe.members):
        return True
    likely = _FOLDERS & probe.members or any(n.startswith("SnomedCT") for n in probe.members)
    return bool(likely) and next(probe.path.rglob("*sct2_*"), None) is not None


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield concepts, then names, types and definitions, then relations."""
    files = find_files(config.path)
    for path in files.get(CONCRETE, ()):
        log.note(f"not read: concrete values ({path.name})")
    release = _Release(config, log)
    for path in files.get(CONCEPTS, ()):
        yield from release.concepts(path)
    for path in files.get(LANGUAGE, ()):
        release.rank_names(path)
    if DESCRIPTIONS in files and not release.ranks.height:
        log.note("no language reference set, so no name is preferred")
    for path in files.get(DESCRIPTIONS, ()):
        yield from release.descriptions(path)
    yield from release.deferred()
    for path in files.get(RELATIONSHIPS, ()):
        yield from release.relations(path)
    for path in files.get(ASSOCIATIONS, ()):
        yield from release.successors(path)


def _is_id(rows: RowChecker, name: str) -> pl.Series:
    """Return a mask of the rows with an SCTID in a column: six to eighteen digits."""
    return rows.column(name).str.contains(r"^[1-9][0-9]{5,17}$")


class _Release:
    """The state of reading a release: the ids of inactive concepts, and the names that wait.

    Candidates for preferred names wait until all descriptions are read.
    """

    def __init__(self, config: SourceConfig, log: ReadLog) -> None:
        self._config, self._log = config, log
        self._seen = pl.Series(dtype=pl.String)
        self._inactive = pl.Series(dtype=pl.String)
        self.ranks = pl.DataFrame(schema={"id": pl.String, "rank": pl.UInt32})
        """The preferred descriptions, ranked by the order of their reference sets."""
        self._sets: dict[str, int] = {}
        self._candidates: list[pl.DataFrame] = []
        self._typed: list[pl.Series] = []
        self._other_types: list[pl.DataFrame] = []
        columns = ("concept", "text", "language")
        self._preferred = pl.DataFrame(schema=dict.fromkeys(columns, pl.String))
        self._relations = {IS_A_TYPE: IS_A}
        self._attributes: dict[str, str] = {}

    def _rows(self, path: Path, kind: str, *, active_only: bool = False) -> Iterator[RowChecker]:
        """Read the active and valid rows of a file."""
        layout = LAYOUTS[kind]
        for rows in read_rows(path, self._log, layout, self._config.encoding):
            rows.reject_unless(rows.column("active").is_in(["0", "1"]), "active is neither 0 nor 1")
            for column in _IDS:
                if column in layout.wanted:
                    rows.reject_unless(_is_id(rows, column), f"{column} is no id of SNOMED CT")
            if kind != CONCEPTS and (active_only or not self._config.keep_suppressed):
                rows.filter_unless(rows.column("active") == "1", "inactive")
                for column in _SUBJECTS.get(kind, ()):
                    active = ~rows.column(column).is_in(self._inactive.implode())
                    rows.filter_unless(active, "of an inactive concept")
            yield rows

    def concepts(self, path: Path) -> Iterator[Block]:
        """Yield the concepts, and keep the ids of inactive ones."""
        for rows in self._rows(path, CONCEPTS):
            rows.reject_unless(_is_id(rows, "id"), "id is no id of SNOMED CT")
            ids = rows.column("id")
            rows.doubt(
                ids.is_in(self._seen.implode()) | ~ids.is_first_distinct(), "id defined twice"
            )
            self._seen = pl.concat([self._seen, ids])
            if not self._config.keep_suppressed:
                inactive = rows.frame.filter(pl.col("active") == "0")["id"]
                self._inactive = pl.concat([self._inactive, inactive])
                self._log.leave_out(inactive)
                rows.filter_unless(rows.column("active") == "1", "inactive")
            yield to_block(ConceptRecord, rows.frame, concept="id")

    def rank_names(self, path: Path) -> None:
        """Keep the preferred descriptions of a language reference set."""
        for rows in self._rows(path, LANGUAGE, active_only=True):
            frame = rows.frame.filter(pl.col("acceptabilityId") == PREFERRED)
            if not frame.height:
                continue
            for name in frame["refsetId"].unique(maintain_order=True):
                self._sets.setdefault(name, len(self._sets))
            ranks = frame.select(
                id="referencedComponentId",
                rank=pl.col("refsetId").replace_strict(self._sets, return_dtype=pl.UInt32),
            )
            ranks = pl.concat([self.ranks, ranks])
            self.ranks = ranks.group_by("id").agg(pl.col("rank").min())

    def descriptions(self, path: Path) -> Iterator[Block]:
        """Yield synonyms, types and definitions."""
        for rows in self._rows(path, DESCRIPTIONS):
            kinds = [FULLY_SPECIFIED, SYNONYM, DEFINITION]
            rows.reject_unless(
                rows.column("typeId").is_in(kinds), "unknown typeId of a description"
            )
            rows.reject_unless(rows.column("term").str.strip_chars() != "", "term is empty")
            rows.reject_unless(rows.column("languageCode") != "", "languageCode is empty")
            codes = {tag: language_code(tag) for tag in rows.column("languageCode").unique()}
            frame = rows.frame.select(
                "id",
                "typeId",
                "line",
                concept="conceptId",
                text=pl.col("term").str.strip_chars(),
                language=pl.col("languageCode").replace(codes),
            )
            definitions = frame.filter(pl.col("typeId") == DEFINITION)
            if definitions.height:
                yield _texts(DefinitionRecord, definitions)
            yield from self._types(frame.filter(pl.col("typeId") == FULLY_SPECIFIED), path)
            names = frame.filter(pl.col("typeId") != DEFINITION).join(
                self.ranks, on="id", how="left", maintain_order="left"
            )
            may_be = (pl.col("typeId") == SYNONYM) & pl.col("rank").is_not_null()
            self._candidates.append(names.filter(may_be))
            yield _texts(NameRecord, names.filter(~may_be))

    def _types(self, names: pl.DataFrame, path: Path) -> Iterator[Block]:
        """Yield the types in English fully specified names; those in other languages wait."""
        tagged = names.with_columns(type=pl.col("text").str.extract(_TAG))
        untagged = tagged.filter(pl.col("type").is_null())
        for name in untagged.iter_rows(named=True):
            self._log.doubt(
                "fully specified name without a tag", name["line"], name["text"], path=path
            )
        tagged = tagged.drop_nulls("type")
        english = pl.col("language") == "en"
        self._other_types.append(tagged.filter(~english))
        tagged = tagged.filter(english)
        self._typed.append(tagged["concept"])
        attributes = tagged.filter(pl.col("type") == "attribute")
        texts = attributes["text"].str.replace(_TAG, "")
        self._attributes.update(zip(attributes["concept"], texts, strict=True))
        yield to_block(TypeRecord, tagged, concept="concept", type="type", label="type")

    def deferred(self) -> Iterator[Block]:
        """Yield the preferred name of each concept and language, and other deferred rows."""
        if not self._candidates:
            return
        names = pl.concat(self._candidates).sort("rank", maintain_order=True)
        first = names.select(pl.struct("concept", "language").is_first_distinct()).to_series()
        self._preferred = names.filter(first)
        yield _texts(NameRecord, self._preferred, kind=pl.lit(NameKind.PREFERRED))
        yield _texts(NameRecord, names.filter(~first))
        others, typed = pl.concat(self._other_types), pl.concat(self._typed)
        others = others.filter(~others["concept"].is_in(typed.implode()))
        others = others.unique("concept", keep="first", maintain_order=True)
        yield to_block(TypeRecord, others, concept="concept", type="type", label="type")

    def _name_of(self, attribute: str) -> str:
        """Return the name of a relation: the preferred or full name of its attribute, or its id."""
        if attribute not in self._relations:
            rows = self._preferred.filter(pl.col("concept") == attribute)
            names = [*rows.filter(pl.col("language") == "en")["text"], *rows["text"]]
            names.append(self._attributes.get(attribute, attribute))
            self._relations[attribute] = names[0]
        return self._relations[attribute]

    def relations(self, path: Path) -> Iterator[Block]:
        """Yield the relations under the names of their attributes."""
        for rows in self._rows(path, RELATIONSHIPS):
            types = {t: self._name_of(t) for t in rows.column("typeId").unique()}
            yield to_block(
                RelationRecord,
                rows.frame,
                head="sourceId",
                relation=pl.col("typeId").replace(types),
                tail="destinationId",
            )

    def successors(self, path: Path) -> Iterator[Block]:
        """Yield the concepts that take the place of inactive ones."""
        for rows in self._rows(path, ASSOCIATIONS, active_only=True):
            partitions = rows.column("referencedComponentId").str.slice(-3, 2)
            of_concept = partitions.is_in(["00", "10"])  # others are descriptions and relations
            known = rows.column("refsetId").is_in(list(SUCCESSORS))
            rows.filter_unless(of_concept & known, "association that names no successor")
            yield to_block(
                IdRecord,
                rows.frame,
                concept="targetComponentId",
                id="referencedComponentId",
                kind=pl.col("refsetId").replace_strict(SUCCESSORS, return_dtype=pl.String),
            )


def _texts(
    record: type[NameRecord | DefinitionRecord], frame: pl.DataFrame, **columns: pl.Expr
) -> Block:
    return to_block(record, frame, concept="concept", text="text", language="language", **columns)


FORMAT = Format(recognise, read)
