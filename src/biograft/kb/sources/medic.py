"""MEDIC (CTD disease vocabulary) reader: TSV or CSV, or the form of 2012 used for NCBI Disease.

CTD's files begin with comments that end in the column names; cells hold lists separated by ``|``.
The form of 2012 is ``id|id||name|name`` per line, with the preferred name first and MeSH and OMIM
ids (without prefix) in any order: the MeSH id is the concept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import TypeAlias

from biograft.errors import FormatError
from biograft.kb.records import (
    IS_A,
    DefinitionRecord,
    IdRecord,
    NameKind,
    NameRecord,
    Record,
    RelationRecord,
    TypeRecord,
)
from biograft.kb.sources.files import read_lines
from biograft.kb.sources.format import Format, Item, Probe, SourceConfig
from biograft.kb.sources.log import ReadLog
from biograft.kb.sources.table import csv_rows

SEPARATOR = "||"
FIRST_COLUMNS = ["DiseaseName", "DiseaseID"]
COLUMNS = ("AltDiseaseIDs", "Definition", "ParentIDs", "Synonyms", "SlimMappings")
N_PROBED = 2000

_MESH = re.compile(r"[CD]\d*")  # the root of the tree is called C
_OLD_IDS = re.compile(r"(?:[CD]\d*|\d+)(?:\|(?:[CD]\d*|\d+))*")
_TERMS = re.compile(r"terms set forth|copyright|licen[cs]e", re.IGNORECASE)

Lines: TypeAlias = Iterator[tuple[int, str]]


def recognise(probe: Probe) -> bool:
    """A line with CTD's column names, or lines of the form of 2012."""
    lines = probe.lines(N_PROBED)
    for line in lines:
        if _columns(line):
            return True
        if not line.startswith("#"):
            # distinct ids of MeSH or OMIM with several names on some line, unlike BioSyn's
            parts = [line.split(SEPARATOR) for line in lines]
            return (
                all(len(p) == 2 and _OLD_IDS.fullmatch(p[0]) for p in parts)
                and any("|" in p[1] for p in parts)
                and len({p[0] for p in parts}) == len(parts)
            )
    return False


def _columns(line: str) -> list[str]:
    """Return CTD's column names if the line holds them."""
    text = line.lstrip("# ").rstrip()
    columns = text.split("\t" if "\t" in text else ",")
    # other files of CTD begin with the same two columns: disease and pathway
    known = columns[:2] == FIRST_COLUMNS and ("ParentIDs" in columns or "Synonyms" in columns)
    return columns if known else []


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield names, ids, and (from CTD's tables) definitions, parents and slim categories."""
    log.opened(config.path)
    lines = read_lines(config.path, config.encoding)
    number, line = next(((n, text) for n, text in lines if text.strip()), (1, ""))
    whole = chain([(number, line)], lines)
    diseases = _Diseases(config, log)
    if line.startswith("#") or _columns(line):
        yield from diseases.read_table(whole)
    elif SEPARATOR in line:
        yield from diseases.read_old_form(whole)
    else:
        raise FormatError(
            "expected CTD's column names, or ids||names",
            path=config.path,
            line=number,
            text=line,
            remedy="check that the file is MEDIC and complete",
        )


class _Diseases:
    """Converts the lines of one file into records."""

    def __init__(self, config: SourceConfig, log: ReadLog) -> None:
        self._config, self._log = config, log
        self._language = config.language or "en"

    def read_old_form(self, lines: Lines) -> Iterator[Record]:
        """Read ``id|id||name|name`` lines."""
        for number, line in lines:
            if not line.strip():
                continue
            self._log.read()
            left, separator, right = line.partition(SEPARATOR)
            ids, names = _split(left), [name.strip() for name in right.split("|")]
            if not separator or not ids or not any(names):
                self._log.reject("not of the form ids||names", number, line)
                continue
            if not all(names):
                self._log.reject("empty name", number, line)
                names = [name for name in names if name]
            concept = next((part for part in ids if _MESH.fullmatch(part)), ids[0])
            yield from self._names(concept, names, number)
            others = (part for part in ids if part != concept)
            yield from (IdRecord(concept, part, line=number) for part in others)
            yield from self._types(concept, [], number)

    def read_table(self, lines: Lines) -> Iterator[Record]:
        """Read the leading comments, then the rows under the columns that they name."""
        columns: list[str] = []
        separator, number, line = "\t", 1, ""
        for number, line in lines:  # noqa: B007 - the error below names the last line
            if columns_here := _columns(line):
                columns, separator = columns_here, "\t" if "\t" in line else ","
            elif line.startswith("#"):
                comment = line.lstrip("#").strip()
                if comment.lower().startswith("report created"):
                    self._log.note(f"data version: {comment}")
                elif _TERMS.search(comment):
                    self._log.note(f"licence: {comment}")
            elif line.strip():
                break
        else:
            line = ""
        if not columns or not line:
            raise FormatError(
                "no line names the columns" if line else "holds no rows",
                path=self._config.path,
                line=number,
                text=line or None,
                remedy="expected '# DiseaseName', 'DiseaseID', ... and rows below",
            )
        rest = chain([(number, line)], lines)
        rows: Iterator[tuple[int, list[str]]]
        if separator == "\t":  # CTD's TSV has no quoting
            rows = ((n, text.split("\t") if text.strip() else []) for n, text in rest)
        else:
            rows = csv_rows((text for _, text in rest), self._config.path, number)
        yield from self._read_rows(rows, columns)

    def _read_rows(
        self, rows: Iterator[tuple[int, list[str]]], columns: list[str]
    ) -> Iterator[Record]:
        positions = {name: columns.index(name) for name in COLUMNS if name in columns}
        for number, row in rows:
            if not any(row):
                continue
            self._log.read()
            if len(row) != len(columns):
                reason = f"{len(row)} fields, expected {len(columns)}"
                self._log.reject(reason, number, " | ".join(row))
                continue
            name, concept = row[0].strip(), row[1].strip()
            if not name or not concept:
                self._log.reject("no name or no id", number, " | ".join(row))
                continue
            cells = {column: row[position].strip() for column, position in positions.items()}
            yield from self._names(concept, [name, *_split(cells.get("Synonyms", ""))], number)
            for other in _split(cells.get("AltDiseaseIDs", "")):
                yield IdRecord(concept, other, line=number)
            if definition := cells.get("Definition"):
                yield DefinitionRecord(concept, definition, self._language, line=number)
            for parent in _split(cells.get("ParentIDs", "")):
                yield RelationRecord(concept, IS_A, parent, line=number)
            yield from self._types(concept, _split(cells.get("SlimMappings", "")), number)

    def _names(self, concept: str, names: list[str], line: int) -> Iterator[Record]:
        kind = NameKind.PREFERRED if self._log.define(concept, line) else NameKind.SYNONYM
        for name in names:
            yield NameRecord(concept, name, self._language, kind, line=line)
            kind = NameKind.SYNONYM

    def _types(self, concept: str, types: list[str], line: int) -> Iterator[Record]:
        for name in filter(None, types or [self._config.default_type]):
            yield TypeRecord(concept, name, line=line)


def _split(cell: str) -> list[str]:
    return [part for item in cell.split("|") if (part := item.strip())]


FORMAT = Format(recognise, read, languages_inside=False, tabular=True)
