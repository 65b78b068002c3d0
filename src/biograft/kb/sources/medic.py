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
from biograft.kb.records import IS_A, Facts
from biograft.kb.sources.files import read_lines
from biograft.kb.sources.format import Format, Item, Probe, SourceConfig
from biograft.kb.sources.log import ReadLog
from biograft.kb.sources.table import csv_rows

SEPARATOR = "||"
NAME, ID = "DiseaseName", "DiseaseID"
N_PROBED = 2000

_MESH = re.compile(r"[CD]\d*")  # the root of the tree is called C
_OLD_IDS = re.compile(r"(?:[CD]\d*|\d+)(?:\|(?:[CD]\d*|\d+))*")
_TERMS = re.compile(r"terms set forth|copyright|licen[cs]e", re.IGNORECASE)

Lines: TypeAlias = Iterator[tuple[int, str]]
Rows: TypeAlias = Iterator[tuple[int, dict[str, str]]]
"""Line of each row, and its cells under CTD's column names."""


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
    known = columns[:2] == [NAME, ID] and ("ParentIDs" in columns or "Synonyms" in columns)
    return columns if known else []


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield names, ids, and (from CTD's tables) definitions, parents and slim categories."""
    lines = read_lines(config.path, config.encoding)
    number, line = next(((n, text) for n, text in lines if text.strip()), (1, ""))
    whole = chain([(number, line)], lines)
    if line.startswith("#") or _columns(line):
        rows = _table(whole, config, log)
    elif SEPARATOR in line:
        rows = _old_form(whole, log)
    else:
        raise FormatError(
            "expected CTD's column names, or ids||names",
            path=config.path,
            line=number,
            text=line,
            remedy="check that the file is MEDIC and complete",
        )
    for number, row in rows:
        facts = Facts(row[ID], number, config.language or "en")
        names = [row[NAME], *_split(row.get("Synonyms", ""))]
        yield from facts.names(names, is_new=log.define(row[ID], number))
        yield from map(facts.id, _split(row.get("AltDiseaseIDs", "")))
        if definition := row.get("Definition"):
            yield facts.definition(definition)
        for parent in _split(row.get("ParentIDs", "")):
            yield facts.relation(IS_A, parent)
        categories = _split(row.get("SlimMappings", "")) or [config.default_type]
        yield from map(facts.type, filter(None, categories))


def _old_form(lines: Lines, log: ReadLog) -> Rows:
    """Read ``id|id||name|name`` lines."""
    for number, line in lines:
        if not line.strip():
            continue
        log.read()
        left, separator, right = line.partition(SEPARATOR)
        ids, names = _split(left), _split(right)
        if not separator or not ids or not names:
            log.reject("not of the form ids||names", number, line)
            continue
        if len(names) <= right.count("|"):
            log.reject("empty name", number, line)
        concept = next((part for part in ids if _MESH.fullmatch(part)), ids[0])
        others = [part for part in ids if part != concept]
        yield (
            number,
            {
                NAME: names[0],
                ID: concept,
                "Synonyms": "|".join(names[1:]),
                "AltDiseaseIDs": "|".join(others),
            },
        )


def _table(lines: Lines, config: SourceConfig, log: ReadLog) -> Rows:
    """Read the leading comments, then the rows under the columns that they name."""
    columns: list[str] = []
    separator, number, line = "\t", 1, ""
    for number, line in lines:  # noqa: B007 - the error below names the last line
        if columns_here := _columns(line):
            columns, separator = columns_here, "\t" if "\t" in line else ","
        elif line.startswith("#"):
            comment = line.lstrip("#").strip()
            if comment.lower().startswith("report created"):
                log.note(f"data version: {comment}")
            elif _TERMS.search(comment):
                log.note(f"licence: {comment}")
        elif line.strip():
            break
    else:
        line = ""
    if not columns or not line:
        raise FormatError(
            "no line names the columns" if line else "holds no rows",
            path=config.path,
            line=number,
            text=line or None,
            remedy="expected '# DiseaseName', 'DiseaseID', ... and rows below",
        )
    rest = chain([(number, line)], lines)
    rows: Iterator[tuple[int, list[str]]]
    if separator == "\t":  # CTD's TSV has no quoting
        rows = ((n, text.split("\t")) for n, text in rest)
    else:
        rows = csv_rows((text for _, text in rest), config.path, number)
    for number, cells in rows:
        row = [cell.strip() for cell in cells]
        if not any(row):
            continue
        log.read()
        if len(row) != len(columns):
            reason = f"{len(row)} fields, expected {len(columns)}"
            log.reject(reason, number, " | ".join(cells))
        elif not row[0] or not row[1]:
            log.reject("no name or no id", number, " | ".join(cells))
        else:
            yield number, dict(zip(columns, row, strict=True))


def _split(cell: str) -> list[str]:
    return [part for item in cell.split("|") if (part := item.strip())]


FORMAT = Format(recognise, read, languages_inside=False, tabular=True)
