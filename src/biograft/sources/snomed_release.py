"""The files of a SNOMED CT release in RF2: which are there, told by their header and their name.

The header says what a file holds; the name says whether it is a *Snapshot* (the newest state
of every component), *Full* (all states) or *Delta* (what changed). Only snapshots are read.
"""

from __future__ import annotations

import re
from pathlib import Path

from biograft.errors import FormatError, InputError
from biograft.sources.delimited import Layout
from biograft.sources.files import read_head
from biograft.sources.format import Probe


def _layout(columns: str) -> Layout:
    return Layout(
        columns=("id", "effectiveTime", "active", "moduleId", *columns.split()),
        separator="\t",
        header=True,
    )


CONCEPTS, DESCRIPTIONS, RELATIONSHIPS, LANGUAGE, CONCRETE = (
    "concepts", "descriptions", "relationships", "language refset", "concrete values",
)  # fmt: skip

LAYOUTS = {
    CONCEPTS: _layout("definitionStatusId"),
    # text definitions too: they are descriptions of another type
    DESCRIPTIONS: _layout("conceptId languageCode typeId term caseSignificanceId"),
    RELATIONSHIPS: _layout(
        "sourceId destinationId relationshipGroup typeId characteristicTypeId modifierId"
    ),
    LANGUAGE: _layout("refsetId referencedComponentId acceptabilityId"),
    CONCRETE: _layout("sourceId value relationshipGroup typeId characteristicTypeId modifierId"),
}

_NAME = re.compile(r"x?(?:sct2|der2)_\w+(?:-[\w-]+)?.*\.txt(?:\.gz)?", re.IGNORECASE)
_OTHER_STATE = re.compile(r"(Full|Delta)(?:-[\w-]+?)?_", re.IGNORECASE)
_STATED = re.compile(r"StatedRelationship", re.IGNORECASE)
_NEEDED = re.compile(r"sct2_(?:Concept|Description|TextDefinition|Relationship)_", re.IGNORECASE)
_READ = re.compile(rf"{_NEEDED.pattern}|cRefset_Language|ConcreteValues", re.IGNORECASE)
"""Only these are opened: dozens of other reference sets lie beside them."""
_FOLDERS = frozenset({"Snapshot", "Terminology", "Full", "Delta"})


def kind_of(lines: list[str]) -> str:
    """Tell by the header what a file holds; empty if it is no file of RF2."""
    header = tuple(lines[0].split("\t")) if lines else ()
    return next((kind for kind, layout in LAYOUTS.items() if layout.columns == header), "")


def is_release(probe: Probe) -> bool:
    """Whether a folder, by the names in it, holds a release or part of one."""
    if any(_NAME.fullmatch(name) for name in probe.members):
        return True
    likely = _FOLDERS & probe.members or any(n.startswith("SnomedCT") for n in probe.members)
    return bool(likely) and next(probe.path.rglob("*sct2_*"), None) is not None


def find_files(path: Path) -> dict[str, list[Path]]:
    """Find the snapshot files of a release, by what they hold."""
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
    """Tell what a file holds; one that is needed must have a known header."""
    lines = Probe(file, read_head(file)).lines(1)
    kind = kind_of(lines)
    if not kind:
        raise FormatError(
            "the header is none of RF2",
            path=file,
            line=1,
            text=(lines or [""])[0],
            remedy="expected id, effectiveTime, active, moduleId, ... parted by tabs",
        )
    return kind


def _refuse_other_state(file: Path) -> Path:
    if match := _OTHER_STATE.search(file.name):
        raise InputError(
            f"is a {match[1]} file, which holds more than the present state",
            path=file,
            remedy="name the Snapshot folder of the release",
        )
    return file
