"""Recognise the format of a file or folder by its content, whatever the formats are of."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Protocol, TypeVar

from biograft.errors import UnrecognisedError
from biograft.registry import Registry
from biograft.sources.files import exists, open_zip, read_head, refuse_utf16
from biograft.sources.format import Probe


class Recogniser(Protocol):
    """A format that can say whether a file is of it."""

    def recognise(self, probe: Probe, /) -> bool:
        """Say whether what the probe shows is of this format."""


R = TypeVar("R", bound=Recogniser)


def look_at(path: Path) -> Probe:
    """Take a first look at a file, or at what lies in a folder."""
    if exists(path) and path.is_dir():
        return Probe(path, b"", frozenset(entry.name for entry in path.iterdir()))
    return Probe(path, read_head(path))


def look_into(path: Path) -> Probe:
    """Look as ``look_at`` does, but into folders to any depth, and into zip archives."""
    if exists(path) and path.is_dir():
        names = (each.name for each in path.rglob("*") if not each.name.startswith("."))
        return Probe(path, b"", frozenset(names))
    if zipfile.is_zipfile(path):
        return Probe(path, b"", _members(path))
    return Probe(path, read_head(path))


def _members(path: Path) -> frozenset[str]:
    with open_zip(path) as archive:
        return frozenset(Path(name).name for name in archive.namelist())


def find_format(probe: Probe, formats: Registry[R], problem: str, hint: str = "") -> str:
    """Name the first format that recognises what the probe shows.

    If there is none, ``problem`` says so, and ``hint`` how to name the right one.
    """
    for name in formats:
        if formats.load(name).recognise(probe):
            return name
    refuse_utf16(probe.head, probe.path)
    raise UnrecognisedError(
        problem,
        path=probe.path,
        line=1 if probe.head else None,
        text=next(iter(probe.lines(1)), "") if probe.head else None,
        remedy=f"name the format, one of {', '.join(formats)}{hint and f' ({hint})'}",
    )
