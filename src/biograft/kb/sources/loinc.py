"""LOINC reader: Loinc.csv, or a release folder with its parts, hierarchy and linguistic variants.

A concept has the id ``LOINC:4548-4``, and ``4548-4`` as an alternate id. Deprecated codes are left
out, with the codes that replace them (MapTo.csv).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from biograft.kb.records import IS_A, Facts, IdKind, IdRecord, NameKind, Record
from biograft.kb.sources.format import Format, Item, Probe, SourceConfig, look_at
from biograft.kb.sources.log import ReadLog
from biograft.kb.sources.table import header_of, named_rows

_AXES = "COMPONENT PROPERTY TIME_ASPCT SYSTEM SCALE_TYP METHOD_TYP"
_FILES = {
    "terms": ("Loinc", f"LOINC_NUM STATUS CLASS SHORTNAME LONG_COMMON_NAME {_AXES}".split()),
    "successors": ("MapTo", ["LOINC", "MAP_TO"]),
    "consumer names": ("ConsumerName", ["LoincNumber", "ConsumerName"]),
    "parts": ("Part", "PartNumber PartTypeName PartName PartDisplayName Status".split()),
    "part links": (
        "LoincPartLink_Primary",
        "LoincNumber PartNumber PartTypeName LinkTypeName".split(),
    ),
    "hierarchy": (
        "ComponentHierarchyBySystem",
        "PATH_TO_ROOT IMMEDIATE_PARENT CODE CODE_TEXT".split(),
    ),
    "variant": (
        r"([a-z]{2})[A-Z]{2}\d+LinguisticVariant",
        f"LOINC_NUM LONG_COMMON_NAME RELATEDNAMES2 {_AXES}".split(),
    ),
}
"""The files of a release, in the order in which they are read: the name of each, as a pattern that
may give its language, and its columns. A file alone is the first that its columns fit."""
_CODE = re.compile(r"\d{1,7}-\d|L[APLG]\d{1,8}-\d|MTHU\d{6}")
_CLASS_TYPES = {"1": "Laboratory", "2": "Clinical", "3": "Claims attachment", "4": "Survey"}


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    cells: Mapping[str, str]
    path: Path
    language: str

    def __getitem__(self, column: str) -> str:
        return self.cells.get(column, "")


def recognise(probe: Probe) -> bool:
    """A folder with Loinc.csv, or a file with the columns of one of the files."""
    if probe.members:
        return "LoincTable" in probe.members or any(map(_is_main, probe.members))
    return bool(_kind(probe))


def _kind(probe: Probe) -> str:
    header = header_of(probe)
    return next((kind for kind, (_, columns) in _FILES.items() if header.issuperset(columns)), "")


def _match(kind: str, name: str) -> re.Match[str] | None:
    return re.fullmatch(rf"{_FILES[kind][0]}\.csv(?:\.gz)?", name)


def _is_main(name: str) -> bool:
    return bool(_match("terms", name))


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield the facts of every file of the release."""
    release = _Release(config, log)
    steps: dict[str, Callable[[_Row], Iterator[Record]]] = {
        "terms": release.term,
        "successors": release.successor,
        "consumer names": release.consumer_name,
        "parts": release.part,
        "part links": release.part_link,
        "hierarchy": release.parent,
        "variant": release.variant,
    }
    for kind, path, language in _files(config):
        source = replace(config, path=path)
        for line, cells in named_rows(source, log, _FILES[kind][1], "name the release of LOINC"):
            yield from steps[kind](_Row(line, cells, path, language))


def _files(config: SourceConfig) -> list[tuple[str, Path, str]]:
    """Return the kind, the path and the language of each file."""
    default = config.language or "en"
    probe = look_at(config.path)
    if probe.head:
        if kind := _kind(probe):
            return [(kind, config.path, default)]
        raise probe.unrecognised(
            "is no file of LOINC", "name Loinc.csv or the folder of the release"
        )
    everything = sorted(path for path in config.path.rglob("*.csv*") if path.is_file())
    if not any(_is_main(path.name) for path in everything):
        raise probe.unrecognised("holds no Loinc.csv", "name its folder")
    return [
        (kind, path, next(iter(match.groups()), default))
        for kind in _FILES
        for path in everything
        if (match := _match(kind, path.name))
    ]


class _Release:
    """State while the files of a release are read."""

    def __init__(self, config: SourceConfig, log: ReadLog) -> None:
        self._config, self._log = config, log
        self._left_out: set[str] = set()

    def _facts(self, code: str, row: _Row) -> Facts | None:
        """Return the facts of a code; None, and counted, if it is no code or is left out."""
        if not _CODE.fullmatch(code):
            self._log.reject("not a code of LOINC", row.line, code, path=row.path)
        elif code in self._left_out:
            self._log.filter("of a code that is left out")
        else:
            return Facts(f"LOINC:{code}", row.line, row.language)
        return None

    def _leave_out(self, code: str, reason: str) -> None:
        self._left_out.add(code)
        self._log.leave_out((f"LOINC:{code}",))
        self._log.filter(reason)

    def term(self, row: _Row) -> Iterator[Record]:
        """Yield the names, types and definition of a term."""
        code = row["LOINC_NUM"]
        if row["STATUS"] == "DEPRECATED" and not self._config.keep_suppressed:
            self._leave_out(code, "deprecated")
            return
        if not (facts := self._facts(code, row)):
            return
        yield facts.id(code)
        name = row["LONG_COMMON_NAME"] or row["SHORTNAME"] or _full_name(row)
        others = (row["SHORTNAME"], row["DisplayName"], row["CONSUMER_NAME"], _full_name(row))
        is_new = self._log.define(facts.concept, row.line, path=row.path)
        yield from facts.names((name, *filter(None, others)), is_new=is_new)
        yield from self._related(facts, row)
        for label in (row["CLASS"], _CLASS_TYPES.get(row["CLASSTYPE"], "")):
            if label:
                yield facts.type(label, label)
        if text := row["DefinitionDescription"]:
            yield facts.definition(text)

    def _related(self, facts: Facts, row: _Row) -> Iterator[Record]:
        for name in filter(None, map(str.strip, row["RELATEDNAMES2"].split(";"))):
            yield facts.name(name, NameKind.RELATED)

    def successor(self, row: _Row) -> Iterator[Record]:
        """Yield the code that takes the place of a deprecated one; of several each may be meant."""
        old, new = row["LOINC"], row["MAP_TO"]
        if not (_CODE.fullmatch(old) and _CODE.fullmatch(new)):
            self._log.reject("not a code of LOINC", row.line, f"{old} {new}", path=row.path)
        else:
            # the comment says when the successor is meant, where there are several
            kind = IdKind.CONSIDER if row["COMMENT"] else IdKind.REPLACED
            yield IdRecord(f"LOINC:{new}", f"LOINC:{old}", kind, row.line)

    def consumer_name(self, row: _Row) -> Iterator[Record]:
        """Yield a name for patients."""
        if (facts := self._facts(row["LoincNumber"], row)) and row["ConsumerName"]:
            yield facts.name(row["ConsumerName"])

    def part(self, row: _Row) -> Iterator[Record]:
        """Yield a part: a component, property, system, ... as a concept of its own."""
        code = row["PartNumber"]
        if row["Status"] not in ("ACTIVE", "") and not self._config.keep_suppressed:
            self._leave_out(code, "part that is not active")
        elif facts := self._facts(code, row):
            name = row["PartDisplayName"] or row["PartName"]
            yield from facts.names(dict.fromkeys((name, row["PartName"] or name)))
            kind = f"part {row['PartTypeName']}".lower()
            yield facts.type(kind, kind)
            yield facts.id(code)

    def part_link(self, row: _Row) -> Iterator[Record]:
        """Yield the relation of a term to one of its parts."""
        head, tail = self._facts(row["LoincNumber"], row), self._facts(row["PartNumber"], row)
        if head and tail:
            yield head.relation(f"has {row['PartTypeName']}".lower(), tail.concept)

    def parent(self, row: _Row) -> Iterator[Record]:
        """Yield a node of the hierarchy and its parent; only parts have names of their own."""
        if not (facts := self._facts(row["CODE"], row)):
            return
        if row["CODE"].startswith(("LP", "MTHU")) and row["CODE_TEXT"]:
            yield facts.name(row["CODE_TEXT"])
        if row["IMMEDIATE_PARENT"] and (parent := self._facts(row["IMMEDIATE_PARENT"], row)):
            yield facts.relation(IS_A, parent.concept)

    def variant(self, row: _Row) -> Iterator[Record]:
        """Yield the names of a term in another language."""
        if not (facts := self._facts(row["LOINC_NUM"], row)):
            return
        names = (
            row["LONG_COMMON_NAME"],
            row["LinguisticVariantDisplayName"],
            _full_name(row),
            row["SHORTNAME"],
        )
        yield from facts.names(dict.fromkeys(filter(None, names)))
        yield from self._related(facts, row)


def _full_name(row: _Row) -> str:
    """Return the fully specified name: the axes of a term, joined by colons."""
    return ":".join(row[axis] for axis in _AXES.split()).rstrip(":")


FORMAT = Format(recognise, read)
