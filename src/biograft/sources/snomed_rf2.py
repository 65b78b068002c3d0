"""SNOMED CT in RF2: the snapshot of a release, or one of its files alone.

The preferred name of a language is the synonym that a language reference set marks as preferred;
where several sets do, the one that stands first in the files. The fully specified name is a
synonym, and its tag, ``(disorder)``, is the concept's type; English names give it before others.
Relations are called by the preferred name of their attribute (``Finding site``), *Is a* is-a.
What is inactive, and what belongs to an inactive concept, is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from biograft.records import ConceptRecord, RelationRecord
from biograft.sources.delimited import read_rows
from biograft.sources.format import Block, Format, Item, Probe, SourceConfig
from biograft.sources.log import ReadLog
from biograft.sources.snomed_names import Names
from biograft.sources.snomed_release import (
    CONCEPTS,
    CONCRETE,
    DESCRIPTIONS,
    LANGUAGE,
    LAYOUTS,
    RELATIONSHIPS,
    find_files,
    is_release,
    kind_of,
)
from biograft.sources.snomed_rows import Rows

if TYPE_CHECKING:
    pass

USED = {
    CONCEPTS: (),
    DESCRIPTIONS: ("conceptId", "languageCode", "typeId", "term"),
    RELATIONSHIPS: ("sourceId", "destinationId", "typeId"),
    LANGUAGE: ("refsetId", "referencedComponentId", "acceptabilityId"),
}
"""The columns read of each kind of file, beside the id and the active flag."""
IDS = {"conceptId", "sourceId", "destinationId", "typeId", "referencedComponentId"}


def recognise(probe: Probe) -> bool:
    """A folder with files named as in RF2, or a file with one of its headers."""
    return is_release(probe) if probe.members else bool(kind_of(probe.lines(1)))


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield concepts, then names, types and definitions, then relations."""
    files = find_files(config.path)
    for path in files.get(CONCRETE, ()):
        log.note(f"not read: concrete values ({path.name})")
    release = _Release(config, log)
    for path in files.get(CONCEPTS, ()):
        yield from release.concepts(path)
    for path in files.get(LANGUAGE, ()):
        release.names.read_preferences(release.rows(path, LANGUAGE, active_only=True))
    if DESCRIPTIONS in files and not release.names.has_preferences:
        log.note("no language reference set, so no name is preferred")
    for path in files.get(DESCRIPTIONS, ()):
        for rows in release.rows(path, DESCRIPTIONS):
            yield from release.names.read(rows)
    yield from release.names.finish()
    for path in files.get(RELATIONSHIPS, ()):
        yield from release.relations(path)


class _Release:
    """What one reading of a release keeps: the concepts that are inactive, and the names."""

    def __init__(self, config: SourceConfig, log: ReadLog) -> None:
        import polars as pl

        self._config, self._log = config, log
        self._met = pl.Series(dtype=pl.String)
        self._inactive = pl.Series(dtype=pl.String)
        self.names = Names(config, log)

    def rows(self, path: Path, kind: str, *, active_only: bool = False) -> Iterator[Rows]:
        """Read the rows of a file that are active and right."""
        wanted = ["id", "active", *USED[kind]]
        for frame in read_rows(path, self._log, LAYOUTS[kind], wanted, self._config.encoding):
            rows = Rows(frame, path, self._log)
            rows.reject_unless(rows.column("active").is_in(["0", "1"]), "active is neither 0 nor 1")
            for column in sorted(IDS.intersection(USED[kind])):
                rows.reject_unless(rows.is_id(column), f"{column} is no id of SNOMED CT")
            if kind != CONCEPTS and (active_only or not self._config.keep_suppressed):
                rows.filter_unless(rows.column("active") == "1", "inactive")
                self._without_inactive(rows, kind)
            yield rows

    def _without_inactive(self, rows: Rows, kind: str) -> None:
        columns = {
            DESCRIPTIONS: ("conceptId",),
            RELATIONSHIPS: ("sourceId", "destinationId"),
        }.get(kind, ())
        for column in columns:
            kept = ~rows.column(column).is_in(self._inactive.implode())
            rows.filter_unless(kept, "of an inactive concept")

    def concepts(self, path: Path) -> Iterator[Block]:
        """Yield the concepts, and keep which are inactive."""
        import polars as pl

        for rows in self.rows(path, CONCEPTS):
            rows.reject_unless(rows.is_id("id"), "id is no id of SNOMED CT")
            ids = rows.column("id")
            rows.doubt(
                ids.is_in(self._met.implode()) | ~ids.is_first_distinct(), "id defined twice"
            )
            self._met = pl.concat([self._met, ids])
            if not self._config.keep_suppressed:
                inactive = rows.frame.filter(pl.col("active") == "0")["id"]
                self._inactive = pl.concat([self._inactive, inactive])
                self._log.leave_out(inactive)
                rows.filter_unless(rows.column("active") == "1", "inactive")
            yield Block(ConceptRecord, rows.frame.select(concept="id", line="line"))

    def relations(self, path: Path) -> Iterator[Block]:
        """Yield the relations under the names of their attributes."""
        import polars as pl

        for rows in self.rows(path, RELATIONSHIPS):
            types = {t: self.names.of_relation(t) for t in rows.column("typeId").unique()}
            yield Block(
                RelationRecord,
                rows.frame.select(
                    head="sourceId",
                    relation=pl.col("typeId").replace(types),
                    tail="destinationId",
                    source=pl.lit(""),
                    line="line",
                ),
            )


FORMAT = Format(recognise, read)
